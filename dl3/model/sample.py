"""Counters of a running program, and the rates between two readings."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Self

from dl3.model.fault import Fault


@dataclass(frozen=True)
class Reading:
    """The counters at one time, as written by the one-core plugin: 'time_ns core_ns tsc_hz received sent'."""

    time_ns: int
    core_ns: int
    tsc_hz: int
    received: int
    sent: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a line; None while it is incomplete."""
        words = text.split()
        if len(words) != 5 or not all(word.isdigit() for word in words):
            return None
        return cls(*(int(word) for word in words))


@dataclass(frozen=True)
class Sample:
    """Rates over an interval, per second of core time that the program received.

    On a dedicated core that is the whole interval; `core_share` is the share that other programs left. Cycles are TSC
    cycles.
    """

    seconds: float
    core_share: float
    received_pps: float
    sent_pps: float
    cycles_per_packet: float

    @property
    def sent_mpps(self) -> float:
        """Packets sent per second of core time, in millions."""
        return self.sent_pps / 1e6

    @classmethod
    def between(cls, first: Reading, last: Reading, is_paced: bool = False) -> Self:
        """The rates between two readings of one program; per second of wall-clock time if the frames are paced."""
        seconds = (last.time_ns - first.time_ns) / 1e9
        core_seconds = (last.core_ns - first.core_ns) / 1e9
        received, sent = last.received - first.received, last.sent - first.sent
        if seconds <= 0 or core_seconds <= 0 or sent <= 0:
            raise Fault(f"the program sent nothing in {seconds:.1f} s: look at its output for the reason")
        counted = seconds if is_paced else core_seconds
        return cls(
            seconds=seconds,
            core_share=core_seconds / seconds,
            received_pps=received / counted,
            sent_pps=sent / counted,
            cycles_per_packet=counted * last.tsc_hz / sent,
        )


def middle(samples: Sequence[Sample]) -> Sample:
    """The median of each figure, taken separately."""
    return Sample(
        seconds=median(s.seconds for s in samples),
        core_share=median(s.core_share for s in samples),
        received_pps=median(s.received_pps for s in samples),
        sent_pps=median(s.sent_pps for s in samples),
        cycles_per_packet=median(s.cycles_per_packet for s in samples),
    )
