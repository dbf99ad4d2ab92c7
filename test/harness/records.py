"""Synthetic records as left by a campaign, for tests of their readers."""

from collections.abc import Iterable
from dataclasses import dataclass

from dl3.model.trial import Account, Spread, Throughput, Trial
from dl3.report.chart import Scene
from dl3.report.groups import Groups
from dl3.report.results import Part, Record, gather

FACTS: dict[str, object] = {
    "cpu_model": "AMD EPYC 9555 64-Core Processor (26-2-1)",
    "n_cpus": 2,
    "caches": {"L1 data": "48K for cpus 0", "L2 unified": "1024K for cpus 0", "L3 unified": "32768K for cpus 0-1"},
    "numa_nodes": {"node0": "0-1"},
    "kernel": "6.18.5",
    "kernel_command_line": "console=ttyS0 root=/dev/vda ro",
    "huge_pages_2m": 1024,
    "huge_pages_2m_free": 512,
    "memory_mib": 24064,
    "dpdk": "22.11.11",
    "compiler": "cc (Debian 12.2.0-14+deb12u1) 12.2.0",
    "build_flags": "-O3 -march=native",
    "drivers_within": ["net_memif", "net_null"],
    "network_devices": [],
    "run": {
        "tsc_offset_ns": 12.0,
        "longest_lag_us": 31.5,
        "late_polls": 0,
        "longest_gap_us": 40.25,
        "foreign": 0,
        "flows": 1000,
    },
}
FRAMES = {"64": 64.0, "128": 128.0, "256": 256.0, "512": 512.0, "1024": 1024.0, "1518": 1518.0, "imix": 209.92}
MEANS = {**FRAMES, "66": 66.0}
GBIT = 1e9


@dataclass(frozen=True)
class Maker:
    """Makes records of one device; `ceiling_pps` is its capacity."""

    dut: str = "dl3d"
    campaign: str = "2026-11-21T23:10:00+00:00"
    ceiling_pps: float = 14.2e6
    line_bps: float = 100 * GBIT
    facts: tuple[tuple[str, object], ...] = tuple(FACTS.items())

    def account(self, sent: int, lost: int) -> Account:
        """Balanced accounting."""
        places = {"dut rx ring full": lost - lost // 10, "corrupted": lost // 10} if lost else {}
        return Account(
            sent=sent,
            received=sent - lost,
            lost=lost,
            duplicated=0,
            reordered=0,
            reordered_per="flow",
            corrupted=lost // 10,
            late=0,
            sent_bytes=sent * 64,
            received_bytes=(sent - lost) * 64,
            lost_by_place=places,
        )

    def trial(self, frame: str, pps: float, **changes: object) -> Trial:
        """A trial at this rate: packets above the ceiling are lost."""
        sent = int(pps * 5)
        lost = max(0, int((pps - self.ceiling_pps) * 5))
        base = 1e9 * 64 / self.ceiling_pps + 400 * pps / self.ceiling_pps
        fields: dict[str, object] = {
            "at": "2026-11-21T23:12:04+00:00",
            "campaign": self.campaign,
            "test": "throughput",
            "dut": self.dut,
            "frame": frame,
            "mean_bytes": MEANS[frame],
            "asked_pps": pps,
            "offered_pps": pps * 1.0001,
            "received_pps": min(pps, self.ceiling_pps),
            "seconds": 5.0,
            "pacing_error": 0.0001,
            "invalid": (),
            "account": self.account(sent, lost),
            "latency": spread(sent - lost, base),
            "latency_from_sending": spread(sent - lost, base * 0.8),
            "jitter_mean": base * 0.1,
            "jitter_max": base * 4,
            "facts": dict(self.facts),
        }
        return Trial.model_validate({**fields, **changes})

    def result(self, frame: str, pps: float, **changes: object) -> Throughput:
        """The result of a search."""
        fields: dict[str, object] = {
            "at": "2026-11-21T23:14:40+00:00",
            "campaign": self.campaign,
            "dut": self.dut,
            "frame": frame,
            "mean_bytes": MEANS[frame],
            "pps": pps,
            "upper_pps": pps * 1.005,
            "limited_by": "dut",
            "goal_loss_ratio": 0.0,
            "resolution": 0.005,
            "trial_seconds": 5.0,
            "repetitions": 2,
            "n_trials": 11,
            "n_invalid": 0,
            "line_bps": self.line_bps,
            "facts": dict(self.facts),
        }
        return Throughput.model_validate({**fields, **changes})


def spread(n: int, base: float) -> Spread:
    """A distribution with a long tail, in nanoseconds."""
    return Spread(
        n=n,
        min=base * 0.6,
        mean=base * 1.1,
        p50=base,
        p90=base * 1.6,
        p99=base * 3.2,
        p99_9=base * 14,
        p99_99=base * 40,
        p99_999=base * 80,
        max=base * 130,
    )


def campaign(maker: Maker) -> list[Trial | Throughput]:
    """Searches for all frame sizes, latency over load for three of them, and trials that are INVALID."""
    records: list[Trial | Throughput] = []
    for frame, size in FRAMES.items():
        line_pps = maker.line_bps / ((size + 20) * 8) if maker.line_bps else float("inf")
        pps = min(maker.ceiling_pps, line_pps)
        records += [maker.trial(frame, pps * share) for share in (1.4, 1.0, 1.1, 1.005)]
        limit = {"imix": "generator"}.get(frame, "line" if pps == line_pps else "dut")
        upper = pps * 1.005 if limit == "dut" else pps
        records.append(maker.result(frame, pps, limited_by=limit, upper_pps=upper))
    for frame in ("64", "512", "imix"):
        for share in (0.1, 0.3, 0.5, 0.7, 0.9, 1.0):
            made = maker.trial(frame, maker.ceiling_pps * share, test="latency", load=share)
            scale = 1 / (1.06 - share)
            records.append(made.model_copy(update={"latency": spread(made.latency.n, made.latency.p50 * scale)}))
    reason = "late: the generator skipped 65,012 frames (0.40%) that were due"
    records.append(maker.trial("64", maker.ceiling_pps * 1.2, invalid=(reason,), at="2026-11-21T23:12:40+00:00"))
    return records


def scene(records: Iterable[Record]) -> Scene:
    """The data from which a chart of these records is drawn."""
    results = gather(records)
    return Scene(Part(None, results), Groups(results))
