"""The flow table of a dl3d in the lab: a flow for each flow of the traffic, in either direction."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast

import numpy as np

from dl3.control.client import Client
from dl3.control.flow_replies import FlowJob, FlowUsage
from dl3.lab.links import ENDS, GENERATOR_ADDRESSES, NAMES
from dl3.model.campaign import Addresses, Traffic
from dl3.model.fault import Fault, UsageFault
from dl3.model.flow_file import ACTION, FLOW, SLICE, FlowWriter, Records
from dl3.model.flow_memory import n_table_flows
from dl3.model.flow_records import set_action
from dl3.model.flow_text import FlowAction
from dl3.model.stream import Stream
from dl3.model.traffic import streams_for
from dl3.model.white_paper import white_paper_flows

LOAD_SECONDS = 300.0
REPLY_SECONDS = 60.0
POLL_SECONDS = 0.1
UDP = 17
FILES: Mapping[Addresses, str] = {"networks": "lab", "white-paper": "white-paper"}  # first part of their names


@dataclass(frozen=True)
class FlowTable:
    """A file of flows, and how many there are."""

    path: Path
    number: int

    def keys(self) -> dict[str, object]:
        """For dl3d's configuration: a frame without a flow is lost, so that every frame that returns has hit one."""
        return {"flow": {"ipv4": self.number, "missing": "drop", "file": str(self.path)}}

    def wait(self, client: Client) -> None:
        """Until dl3d has loaded all; Fault if it cannot."""
        patient = Client(client.path, REPLY_SECONDS)
        deadline = time.monotonic() + LOAD_SECONDS
        while patient.ask(FlowUsage, "flows").ipv4.flows < self.number:
            job = patient.ask(FlowJob, "flows.job")
            if job.state == "failed":
                raise Fault(f"dl3d cannot load the flows: {job.reason}")
            if time.monotonic() > deadline:
                raise Fault(f"dl3d has loaded {job.done:,} of {self.number:,} flows in {LOAD_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)


def flows_of_stream(stream: Stream, number: int, action: int) -> Iterator[Records]:
    """The flows that dl3gen sends: destination addresses first, then source ports."""
    fields = cast(Mapping[str, Any], stream.model_extra)
    source, hosts, ports = IPv4Address(fields["src_ip"]), fields["dst_ip"], fields["src_port"]
    for first in range(0, number, SLICE):
        numbers = np.arange(first, min(first + SLICE, number), dtype=np.uint32)
        made = np.zeros(len(numbers), dtype=FLOW)
        made["src4"], made["dst_port"], made["proto"] = int(source), fields["dst_port"], UDP
        made["dst4"] = int(IPv4Address(hosts["first"])) + numbers % hosts["count"]
        made["src_port"] = ports["first"] + numbers // hosts["count"]
        made["action"] = action
        yield made


def flows_of(traffic: Traffic) -> Iterator[Records]:
    """All flows; their actions are numbers of links."""
    if traffic.addresses == "white-paper":
        for flows in white_paper_flows(traffic.flows):
            # As dl3 flow example writes them: action 0 is that of the first network, which is behind the right link.
            flows["action"] = 1 - flows["action"]
            yield flows
        return
    for stream in streams_for(traffic.model_copy(update={"direction": "bidirectional"}), ENDS):
        yield from flows_of_stream(stream, traffic.flows, NAMES.index(str(stream.to)))


def actions() -> Records:
    """To the generator's address on either link."""
    made = np.zeros(len(NAMES), dtype=ACTION)
    for record, via, name in zip(made, GENERATOR_ADDRESSES, NAMES, strict=True):
        set_action(record, FlowAction("via", via, name))
    return made


def write(path: Path, traffic: Traffic) -> None:
    """Write the file; Fault if there is no space for it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FlowWriter(path) as file:
            for flows in flows_of(traffic):
                file.add(flows)
            file.finish(actions(), int(time.time() * 1000))
    except OSError as error:
        raise Fault(f"{path}: the file of flows cannot be written: {error.strerror or error}") from error


def table_for(traffic: Traffic, folder: Path) -> FlowTable:
    """The table for this traffic; its file is kept. UsageFault if the traffic is not known in advance."""
    if traffic.streams or traffic.family != "ipv4":
        raise UsageFault("a flow table is only made for IPv4 traffic without streams of your own")
    # Both ways: before a measurement frames are sent in either direction.
    path = folder / f"{FILES[traffic.addresses]}-{traffic.flows}.1.flows"
    if not path.exists():
        write(path, traffic)
    return FlowTable(path, n_table_flows(traffic.flows))
