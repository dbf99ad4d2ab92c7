"""Simulated generator, device and dl3d for the tests of trials and searches."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from dl3.control.client import Client
from dl3.model.fault import Fault, UsageFault

Kind = TypeVar("Kind", bound=BaseModel)
Change = Callable[[dict[str, Any]], None]

START_NS = 5_000_000_000  # CLOCK_MONOTONIC, time of the first frame
MIX_BYTES = {"imix": 209.92, "classic": 353.8}
STREAM = {
    "flows": 1,
    "refused": 0,
    "late": 0,
    "duplicated": 0,
    "reordered": 0,
    "reordered_per": "flow",
    "corrupted": 0,
    "too_old": 0,
    "longest_lag_us": 1.0,
}
PORT = {
    "device": "net_memif0",
    "mac": "02:00:00:00:00:11",
    "link_up": True,
    "has_backpressure": True,
    "rx_packets": 0,
    "foreign": 0,
    "stale": 0,
    "misdirected": 0,
    "late_polls": 0,
    "longest_gap_us": 3.0,
    "rx_missed": 0,
}
IDLE = {
    "run": 0,
    "state": "idle",
    "seconds": 0.0,
    "tsc_hz": 2_600_000_000,
    "tsc_offset_ns": 0.0,
    "streams": [],
    "ports": [],
    "workers": [{"worker": 0, "core": 1, "longest_gap_us": 3.0, "rounds": 9}],
}


def latency(n: int, ns: float) -> dict[str, Any]:
    """A distribution with all values equal."""
    names = ("min", "mean", "max", "p50", "p90", "p99", "p99_9", "p99_99", "p99_999")
    return {"n": n, **dict.fromkeys(names, ns if n else 0.0), "histogram": [(ns, ns, n)] if n else []}


@dataclass
class FakeGenerator(Client):
    """Simulates a generator limited by its ceiling and a device limited by its rate; `spoil` edits the results."""

    device_pps: float = 7.3e6
    ceiling_pps: float = 20e6
    line_bps: float = 0.0
    mtus: tuple[int, int] = (1500, 1500)  # of the two ports
    buffer_frames: int = 0  # device buffer: frames held while more arrive than it forwards
    streams: list[dict[str, Any]] = field(default_factory=lambda: [{"from": "left", "to": "right", "rate": "1 Mpps"}])
    spoil: Change = field(default=lambda _: None)
    path: Path = Path("/fake")
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    run: int = 0
    newest: dict[str, Any] = field(default_factory=lambda: dict(IDLE))
    gaps: dict[str, Any] = field(default_factory=lambda: {"gaps": [], "forgotten": 0, "now_ns": START_NS})

    def ask(self, kind: type[Kind], method: str, **params: object) -> Kind:
        """Reply immediately."""
        self.asked.append((method, params))
        return kind.model_validate(getattr(self, f"reply_{method}")(params))

    def reply_ports(self, _params: dict[str, Any]) -> dict[str, Any]:
        """Two ports."""
        mtus = zip(("left", "right"), self.mtus, strict=True)
        ports = [{**PORT, "name": name, "line_bps": self.line_bps, "mtu": mtu} for name, mtu in mtus]
        return {"ports": ports}

    def reply_streams(self, _params: dict[str, Any]) -> dict[str, Any]:
        """The streams of the configuration file."""
        return {"streams": self.streams}

    def reply_send(self, params: dict[str, Any]) -> dict[str, Any]:
        """Complete the whole run immediately."""
        self.run += 1
        given, seconds = params["streams"], params.get("seconds", 0.0)
        if any(not isinstance(s["size"], int) and s["size"] not in MIX_BYTES for s in given):
            raise UsageFault("streams[0] (stream0): 'size' is neither a number nor a mix")
        rates = [s["rate"] if s["rate"] != "max" else 0.0 for s in given]
        made = [self.stream(i, given[i], rates, seconds) for i in range(len(given))]
        received = sum(stream["received"] for stream in made)
        ports = self.reply_ports({})["ports"]
        ports[1]["rx_packets"] = received
        head = {
            **IDLE,
            "run": self.run,
            "state": "done",
            "seconds": seconds,
            "tsc_hz": 2_600_000_000,
            "tsc_offset_ns": 0.0,
        }
        self.newest = {**head, "streams": made, "ports": ports}
        self.spoil(self.newest)
        return {"run": self.run, "streams": given}

    def stream(self, i: int, given: dict[str, Any], rates: list[float], seconds: float) -> dict[str, Any]:
        """Counters of one stream; ceiling and device rate are divided evenly among the streams."""
        ceiling, device = self.ceiling_pps / len(rates), self.device_pps / len(rates)
        rate = min(rates[i] or ceiling, ceiling)
        if "frames" in given:
            seconds = given["frames"] / rate
        due, sent = round((rates[i] or ceiling) * seconds), round(rate * seconds)
        received = round(min(sent, device * seconds + self.buffer_frames))
        mean = MIX_BYTES.get(given["size"], given["size"])
        return {
            **STREAM,
            "name": given.get("name", f"stream{i}"),
            "id": i,
            "from_port": given["from"],
            "to_port": given["to"],
            "asked_pps": rates[i],
            "offered_pps": sent / seconds,
            "sent": sent,
            "sent_bytes": round(sent * mean),
            "late": due - sent,
            "received": received,
            "received_bytes": round(received * mean),
            "lost": sent - received,
            "lost_by_gaps": sent - received,
            "last_lost": sent - 1 if sent > received else None,
            "latency": latency(received, 4000.0 + 1000 * i),
            "latency_from_sending": latency(received, 3500.0),
            "jitter": {"n": max(0, received - 1), "mean": 5.0, "max": 9.0},
        }

    def reply_halt(self, _params: dict[str, Any]) -> dict[str, Any]:
        """No run is active."""
        return {"run": self.run}

    def reply_results(self, params: dict[str, Any]) -> dict[str, Any]:
        """Results of the latest run."""
        timeline = {"timeline": self.timeline()} if params.get("timeline") else {}
        found = {**self.newest, **timeline}
        if params.get("histograms") or "streams" not in found:
            return found
        briefly = [{**one, "latency": {**one["latency"], "histogram": ()}} for one in found["streams"]]
        return {**found, "streams": briefly}

    def timeline(self) -> dict[str, Any]:
        """The run in two buckets; all loss is in the second."""
        sent = sum(stream["sent"] for stream in self.newest["streams"])
        received = sum(stream["received"] for stream in self.newest["streams"])
        half = min(sent // 2, received)
        counts = {"sent": (half, sent - half), "received": (half, received - half)}
        return {"start_ns": START_NS, "bucket_ns": 500_000_000, **counts}

    def reply_gaps(self, _params: dict[str, Any]) -> dict[str, Any]:
        """The configured pauses."""
        return self.gaps

    def reply_status(self, _params: dict[str, Any]) -> dict[str, Any]:
        """The process id."""
        return {"pid": 11}


@dataclass
class FakeForwarder(Client):
    """Simulates the drop counters of a dl3d that processes a FakeGenerator's frames; `spoil` edits them after a run."""

    generator: FakeGenerator = field(default_factory=FakeGenerator)
    spoil: Change = field(default=lambda _: None)
    path: Path = Path("/fake")
    gaps: dict[str, Any] = field(default_factory=lambda: {"gaps": [], "forgotten": 0, "now_ns": START_NS})

    def ask(self, kind: type[Kind], method: str, **params: object) -> Kind:
        """Reply immediately."""
        assert not params  # noqa: S101
        return kind.model_validate(getattr(self, f"reply_{method}")())

    def reply_gaps(self) -> dict[str, Any]:
        """The configured pauses."""
        return self.gaps

    def reply_status(self) -> dict[str, Any]:
        """The process id."""
        return {"pid": 12}

    def reply_workers(self) -> dict[str, Any]:
        """One worker, on core 3."""
        worker = {"worker": 0, "core": 3, "numa": 0, "queues": (), "counters": {}, "empty_share": 0.0}
        return {"workers": [worker | {"poll_gap": None, "cycles_per_packet": None, "verdicts": {}}]}

    def reply_ports(self) -> dict[str, Any]:
        """No ports."""
        return {"ports": ()}

    def reply_mirror(self) -> dict[str, Any]:
        """Fails: there is no mirror."""
        raise Fault("ports have no TAP interfaces")

    def reply_drops(self) -> dict[str, Any]:
        """All counters are zero before the first run."""
        streams = self.generator.newest.get("streams", [])
        received = sum(stream["sent"] - stream["refused"] for stream in streams)
        sent = sum(stream["received"] for stream in streams)
        drops = {
            "received": received,
            "injected": 0,
            "copied": 0,
            "sent": sent,
            "punted": 0,
            "in_flight": 0,
            "dropped": received - sent,
            "verdicts": [{"name": "tx_refused", "packets": received - sent, "step": "send", "text": ""}],
            "wire": {"rx_missed": 0, "rx_no_mbuf": 0, "rx_errors": 0},
        }
        if streams:
            self.spoil(drops)
        return drops
