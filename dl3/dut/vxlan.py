"""A device with hosts behind its left link, and the underlay of a VXLAN behind its right one, where dl3gen is the remote end.

Frames of hosts leave by the right link in VXLAN, and those that come in VXLAN leave by the left one.
"""

from collections.abc import Mapping, Sequence
from typing import Self

from dl3.dut.wired import MOST_BYTES
from dl3.lab.links import DUT_MACS, GENERATOR_MACS, NAMES
from dl3.model.fault import UsageFault
from dl3.model.stream import OUTER_BYTES, Stream

MODE = "vxlan"
HOSTS, UNDERLAY = NAMES
VNI, UDP_PORT = 100, 4789
LOCAL, REMOTE, LENGTH = "192.0.2.1", "192.0.2.2", 24
REMOTE_MAC = GENERATOR_MACS[1]
HOST, FAR_HOST = GENERATOR_MACS[0], DUT_MACS[0]  # behind the left link, and behind the remote end
MORE_BYTES = 20 + OUTER_BYTES["vxlan"]  # over IPv4
LARGEST = {MODE: MOST_BYTES - MORE_BYTES}  # a host's frame, including the FCS, by mode


class InVxlan(Stream):
    """A stream in VXLAN, whose frame sizes are those of the hosts' frames."""

    def at(self, frame: str, pps: float) -> Self:
        """See Stream."""
        if not frame.isdigit():
            raise UsageFault(f"frames of '{frame}' cannot be sent in VXLAN: take sizes, such as 64")
        return super().at(str(int(frame) + MORE_BYTES), pps)


def carried(options: Mapping[str, str], streams: Sequence[Stream]) -> tuple[Stream, ...]:
    """What comes from the right link is in VXLAN in this mode; in others, all streams are as they are."""
    if options["mode"] != MODE:
        return tuple(streams)
    return tuple(in_vxlan(one) if one.sender == UNDERLAY else one for one in streams)


def in_vxlan(stream: Stream) -> InVxlan:
    """The same flows, from the far host to the one behind the left link."""
    ends = {"src_ip": REMOTE, "dst_ip": LOCAL, "inner_src_mac": FAR_HOST, "inner_dst_mac": HOST}
    return InVxlan.model_validate({**stream.written(), "encap": {"type": "vxlan", "vni": VNI, **ends}})
