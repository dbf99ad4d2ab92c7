"""Whether the packets of trials had a flow in the flow table of the device under test, as its workers counted them."""

from collections.abc import Container, Iterable
from typing import NamedTuple, Self

from dl3.model.campaign import Job
from dl3.model.trial import Trial


class FlowHits(NamedTuple):
    """Packets that were looked up, and those of them that had a flow."""

    packets: int
    found: int

    @property
    def missed(self) -> int:
        """Packets without a flow."""
        return self.packets - self.found

    @classmethod
    def of(cls, trials: Iterable[Trial], jobs: Container[str]) -> Self | None:
        """In the trials of these jobs; None without any count."""
        work = [each for one in trials if one.job in jobs and one.evidence for each in one.evidence.work]
        counted = [(each.packets, each.flow_packets) for each in work if each.flow_packets is not None]
        packets = sum(packets for packets, _ in counted)
        return cls(packets, sum(found for _, found in counted)) if packets else None


def with_table(jobs: Iterable[Job]) -> dict[str, str]:
    """Jobs whose device has a flow table: device by key."""
    return {job.key: job.setup.dut.name for job in jobs if job.setup.dut.has_flow_table}
