"""dl3gen between wires with known loss and delay (test/device): its results must match what the wires did."""

import os
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from dl3.control.generator import Results, StreamResult
from dl3.lab.generator import Generator
from dl3.lab.program import Surroundings
from harness.plugins import plugin
from harness.wire import wait_until
from harness.wired import BUILD

DL3GEN = BUILD / "src" / "dl3gen"
ROW = struct.Struct("24sQ")
DIE_NS, HOLD = b"die_ns", b"hold"
PATIENCE_S = 60.0
CORES = sorted(os.sched_getaffinity(0))
PORTS = ("left", "right")
THERE, BACK = "from=0 to=1", "from=1 to=0"
# A limit handles untagged IPv4/UDP frames by their due times, so pauses of the machine cause no loss.
AS_DUE = "due_at=50"
# EAL arguments that select dl3gen's code with and without wide vectors.
VECTORS = {"with vectors": (), "without vectors": ("--force-max-simd-bitwidth=64",)}


@dataclass(frozen=True)
class Truth:
    """What one channel of the device did, by its own counters."""

    offered: int
    refused: int
    dead: int
    over_limit: int
    after_limit: int
    dropped: int
    corrupted: int
    swapped: int
    duplicated: int
    too_long: int
    ring_full: int
    taken: int
    die_ns: int
    hold: int

    @classmethod
    def of(cls, rows: bytes) -> "Truth":
        """Read the rows of one channel; names follow the numbers."""
        return cls(**{name.rstrip(b"\0").decode(): n for name, n in ROW.iter_unpack(rows) if name.strip(b"\0")})

    def since(self, before: "Truth") -> "Truth":
        """The difference to `before`."""
        old = asdict(before)
        return Truth(**{name: n - old[name] for name, n in asdict(self).items()})

    @property
    def n_under_way(self) -> int:
        """Frames that went in and will come out."""
        return self.offered + self.duplicated - self.lost - self.taken

    @property
    def lost(self) -> int:
        """Frames that went in and never come out, not counting corrupted ones."""
        return (
            self.refused
            + self.dead
            + self.over_limit
            + self.after_limit
            + self.dropped
            + self.too_long
            + self.ring_full
        )


def stream(**keys: Any) -> dict[str, Any]:
    """A stream from left to right; `keys` of "from" are written `from_`."""
    whole = {"from": "left", "to": "right", "dst_mac": "02:00:00:00:00:99", "rate": "100 kpps"}
    return whole | {key.rstrip("_"): value for key, value in keys.items()}


def flood(**keys: Any) -> dict[str, Any]:
    """A stream at maximum rate, which is never late: all of its frames are sent."""
    return stream(**({"rate": "max"} | keys))


def port(index: int, **keys: Any) -> dict[str, Any]:
    """Port left or right of the file, with additional `keys`."""
    return {"name": PORTS[index], "device": f"net_null{index},no-rx=1", "mac": f"02:00:00:00:00:1{index}"} | keys


def eal(*args: str) -> dict[str, Any]:
    """The EAL section of the file: the device, and arguments."""
    plugins = {"plugins": [plugin("answers")]}
    return plugins | {"args": list(args)} if args else plugins


def generator_text(streams: Sequence[Mapping[str, Any]], **keys: Any) -> str:
    """A configuration with ports left and right and additional top-level `keys`."""
    whole = {
        "ports": [port(i) for i in range(len(PORTS))],
        "workers": [{"core": CORES[-1]}],
        "memory": {"hugepages": "never"},
        "eal": eal(),
        "control": {"socket": "@SOCKET@"},
        "streams": [dict(each) for each in streams],
    }
    text: str = yaml.safe_dump(whole | keys, sort_keys=False)
    return text


def at_rest(read: Callable[[], Results]) -> Results:
    """Results once no frame is in a ring of dl3gen: each worker has polled all ports between two of them, in vain.

    A busy machine takes longer, and leaves nothing uncounted.
    """
    before, deadline = read(), time.monotonic() + PATIENCE_S
    while True:
        now = read()
        turns = zip(before.workers, now.workers, strict=True)
        if all(new.rounds >= old.rounds + 2 for old, new in turns):
            if [port.rx_packets for port in now.ports] == [port.rx_packets for port in before.ports]:
                return now
            before = now
        assert time.monotonic() < deadline, f"dl3gen was never at rest: {now}"
        time.sleep(0.005)


class Bench:
    """dl3gen with the given channels between its ports, ready to send. Use it in a with statement.

    Other keys are those of the file. With `measures`, it has priority over other processes on its core.
    """

    def __init__(self, folder: Path, channels: Sequence[str] = (THERE,), measures: bool = False, **keys: Any) -> None:
        self._account = folder / "account"
        self._dump = folder / "dump"
        self._account.unlink(missing_ok=True)
        environment = {
            "ANSWERS_CHANNELS": ";".join(channels),
            "ANSWERS_ACCOUNT": str(self._account),
            "ANSWERS_DUMP": str(self._dump),
        }
        text = generator_text(keys.pop("streams", [stream()]), **keys)
        around = Surroundings(environment=environment, goes_first=measures)
        self.dl3gen = Generator(DL3GEN, text, around)
        self._n_channels = len(channels)
        try:
            self.dl3gen.wait_ready()
            wait_until(self._account.exists, "the wires were there")
            self.forget()
        except BaseException:
            self.dl3gen.close()
            raise

    def __enter__(self) -> "Bench":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            status = self.dl3gen.stop()
            assert error or status == 0, f"dl3gen ended with status {status}: {self.dl3gen.stderr}"
        finally:
            self.dl3gen.close()

    def truths(self) -> list[Truth]:
        """What each channel did since the latest run began, or since `forget`."""
        return [now.since(before) for now, before in zip(self._read_truths(), self._before, strict=True)]

    def _read_truths(self) -> list[Truth]:
        rows = self._account.read_bytes()
        size = len(rows) // self._n_channels
        return [Truth.of(rows[i * size : (i + 1) * size]) for i in range(self._n_channels)]

    def die(self, ns: int) -> None:
        """Starting with the next frame, the first channel loses everything for this long."""
        self._order(DIE_NS, ns)

    def hold(self, is_held: bool) -> None:
        """Whether frames wait in the first channel, so that none comes out."""
        self._order(HOLD, int(is_held))

    def _order(self, name: bytes, value: int) -> None:
        at = self._account.read_bytes().index(name)
        with self._account.open("r+b") as file:
            file.seek(at)
            file.write(ROW.pack(name, value))

    def forget(self) -> None:
        """Restart the channel counters."""
        self._before = self._read_truths()

    def run(self, *streams: Mapping[str, Any], **params: Any) -> Results:
        """Send, wait for frames in flight, and return the packet accounting."""
        if streams:
            params["streams"] = [dict(each) for each in streams]
        self.forget()
        self.dl3gen.send(**params)
        return self.finish()

    def finish(self) -> Results:
        """Wait until all is sent and no frame is in flight, and return the packet accounting."""
        self.dl3gen.finish(0.0)
        self._wait_empty()
        return at_rest(self.dl3gen.results)

    def _wait_empty(self) -> None:
        """Wait until no frames are in flight; the test judges any that remain."""
        end = time.monotonic() + PATIENCE_S
        while any(truth.n_under_way for truth in self._read_truths()) and time.monotonic() < end:
            time.sleep(0.01)

    def run_one(self, *streams: Mapping[str, Any], **params: Any) -> tuple[StreamResult, Truth]:
        """A run of one stream: its accounting, and the counters of the first channel."""
        (only,) = self.run(*streams, **params).streams
        return only, self.truths()[0]

    def dumped(self, port: int = 0) -> Path:
        """The file with frames received on port number `port`; complete once it holds `dump` of them."""
        return self._dump.with_name(f"dump{port}.pcap")
