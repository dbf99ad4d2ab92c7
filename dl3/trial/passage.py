"""dl3d's packet accounting for one trial: the difference between two readings of its counters."""

from dataclasses import dataclass
from typing import Self

from dl3.control.replies import Drops

FORWARD = "forward"
TX_REFUSED = "tx_refused"  # dropped by dl3d because the sink polled too late
NO_MBUF = "rx_no_mbuf"
RX_MISSED = "rx_missed"
WIRE = (RX_MISSED, "rx_errors")
ROUNDS_PER_LOOK = 64  # empty rounds between two attempts of a worker to get a buffer, see src/datapath/worker.c


@dataclass(frozen=True)
class Passage:
    """Packets between two readings; `lost` is keyed by the names of dl3d's drops and of its device counters."""

    received: int
    injected: int
    copied: int
    sent: int
    punted: int
    dropped: int
    lost: dict[str, int]
    is_whole: bool  # no counter decreased, as happens when dl3d is restarted
    no_mbuf: int = 0  # times a device found no receive buffer, for devices that count it; not a packet count
    starved_s: float = 0.0  # approximate time workers found no buffer, independent of device counters

    @classmethod
    def between(cls, before: Drops, after: Drops, round_s: float = 0.0) -> Self:
        """Difference of two readings. `round_s` is the mean duration of a worker's round, 0 if unknown."""
        sums = {
            field: getattr(after, field) - getattr(before, field)
            for field in ("received", "injected", "copied", "sent", "punted", "dropped")
        }
        old = {verdict.name: verdict.packets for verdict in before.verdicts}
        lost = {v.name: v.packets - old.get(v.name, 0) for v in after.verdicts if v.name != FORWARD}
        lost |= {name: (getattr(after.wire, name) or 0) - (getattr(before.wire, name) or 0) for name in WIRE}
        is_whole = all(value >= 0 for value in (*sums.values(), *lost.values()))
        no_mbuf = (after.wire.rx_no_mbuf or 0) - (before.wire.rx_no_mbuf or 0)
        looks = after.wire.starved_loops - before.wire.starved_loops
        lost = {name: n for name, n in lost.items() if n}
        is_whole = is_whole and min(no_mbuf, looks) >= 0
        starved_s = looks * ROUNDS_PER_LOOK * round_s
        return cls(**sums, lost=lost, is_whole=is_whole, no_mbuf=no_mbuf, starved_s=starved_s)

    @property
    def named(self) -> int:
        """Sum of the named drops, without frames that devices lost before dl3d received them."""
        return sum(packets for name, packets in self.lost.items() if name not in WIRE)

    @property
    def missing(self) -> int:
        """received + injected + copied - sent - punted - named drops: 0 once no packet is in flight."""
        return self.received + self.injected + self.copied - self.sent - self.punted - self.named
