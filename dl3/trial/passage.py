"""What dl3d did with the packets of one trial: the difference between two of its accounts."""

from dataclasses import dataclass
from typing import Self

from dl3.control.replies import Drops

FORWARD = "forward"
TX_REFUSED = "tx_refused"  # what a sink that polls too late makes dl3d drop
NO_MBUF = "rx_no_mbuf"
RX_MISSED = "rx_missed"
WIRE = (RX_MISSED, "rx_errors")
ROUNDS_PER_LOOK = 64  # that found no frame: so often a worker looks for a buffer, see src/datapath/worker.c


@dataclass(frozen=True)
class Passage:
    """Packets between two readings; `lost` by the names of dl3d's drops and of its devices' counters."""

    received: int
    injected: int
    sent: int
    punted: int
    dropped: int
    lost: dict[str, int]
    is_whole: bool  # no counter went back, as it does when dl3d is started again
    no_mbuf: int = 0  # times that a device found no buffer to receive into, of those that count it; not packets
    starved_s: float = 0.0  # for about so long workers found none, whatever their devices count

    @classmethod
    def between(cls, before: Drops, after: Drops, round_s: float = 0.0) -> Self:
        """What happened from one to the other; a worker's round took so long in the mean, 0: unknown."""
        sums = {
            field: getattr(after, field) - getattr(before, field)
            for field in ("received", "injected", "sent", "punted", "dropped")
        }
        old = {verdict.name: verdict.packets for verdict in before.verdicts}
        lost = {v.name: v.packets - old.get(v.name, 0) for v in after.verdicts if v.name != FORWARD}
        lost |= {name: getattr(after.wire, name) - getattr(before.wire, name) for name in WIRE}
        is_whole = all(value >= 0 for value in (*sums.values(), *lost.values()))
        no_mbuf = after.wire.rx_no_mbuf - before.wire.rx_no_mbuf
        looks = after.wire.starved_loops - before.wire.starved_loops
        lost = {name: n for name, n in lost.items() if n}
        is_whole = is_whole and min(no_mbuf, looks) >= 0
        starved_s = looks * ROUNDS_PER_LOOK * round_s
        return cls(**sums, lost=lost, is_whole=is_whole, no_mbuf=no_mbuf, starved_s=starved_s)

    @property
    def named(self) -> int:
        """Sum of the named drops, without what devices lost before dl3d received it."""
        return sum(packets for name, packets in self.lost.items() if name not in WIRE)

    @property
    def missing(self) -> int:
        """received + injected - sent - punted - named drops: 0 if the accounting balances, once no packet is in flight."""
        return self.received + self.injected - self.sent - self.punted - self.named
