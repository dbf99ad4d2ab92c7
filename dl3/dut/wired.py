"""A bed in the lab: dl3gen on links to a device that was started for it."""

from collections.abc import Mapping
from dataclasses import dataclass

from dl3.control.client import DL3GEN, Client
from dl3.lab.links import Flows, streams
from dl3.lab.memif import MemifLab
from dl3.model.campaign import Traffic
from dl3.model.fault import Fault
from dl3.model.stream import Stream

REPLY_TIMEOUT_S = 30.0  # dl3gen may have millions of flows to lay out


def streams_of(traffic: Traffic) -> tuple[Stream, ...]:
    """A person's own, or those of the links."""
    flows = Flows(number=traffic.flows, is_both_ways=traffic.direction != "unidirectional")
    given = traffic.streams or streams(flows)
    return tuple(Stream.model_validate(each) for each in given)


@dataclass(frozen=True)
class WiredBed:
    """See dl3.dut.bed."""

    lab: MemifLab
    streams: tuple[Stream, ...]
    about: Mapping[str, object]

    @property
    def generator(self) -> Client:
        """dl3gen."""
        return Client(self.lab.generator.path, REPLY_TIMEOUT_S, DL3GEN)

    @property
    def dut(self) -> Client | None:
        """The dl3d, if it is one."""
        return self.lab.dut

    @property
    def wire(self) -> str:
        """Kind of port."""
        return "memif"

    @property
    def facts(self) -> Mapping[str, object]:
        """Of the device and the lab."""
        return {"dut": dict(self.about), "lab": self.lab.facts()}

    def freeze(self) -> None:
        """All stand still."""
        self.lab.freeze()

    def thaw(self) -> None:
        """They go on."""
        self.lab.thaw()

    def reset_process(self) -> None:
        """Not over memif."""
        raise Fault("a process at memif links cannot be reset: dl3gen would poll a dead peer")

    def reset_port(self) -> None:
        """Not over memif."""
        raise Fault("a port at memif links cannot be reset")
