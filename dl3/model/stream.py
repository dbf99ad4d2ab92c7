"""A stream as written in a file. Only the keys set by a measurement are modelled here; dl3gen validates the rest."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import ConfigDict, Field

from dl3.model.fault import UsageFault
from dl3.model.noun import Noun

NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
RATE = re.compile(rf"\s*({NUMBER})\s*([kMGT]?)\s*(pps|%|bit/s(?:\s*l[12])?)?\s*")
MIXES = ("imix", "classic")  # frame size mixes, as in src/gen/read_size.c
CAPTURE = "capture"  # used in place of a frame size for streams that replay captures
OUTER_BYTES = {"mpls": 0, "mpls-udp": 8, "gre": 4, "gretap": 4 + 14, "vxlan": 8 + 8 + 14}  # without labels, key and IP
MULTIPLES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class Stream(Noun):
    """Frame size and rate are set for each trial; everything else stays as written."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    name: str | None = None
    sender: str | None = Field(default=None, alias="from")
    to: str | None = None
    size: object = None
    rate: str | float | None = None

    @property
    def is_replay(self) -> bool:
        """Whether the stream replays a capture."""
        return "pcap" in (self.model_extra or {})

    def at(self, frame: str, pps: float) -> Self:
        """A copy with this frame size or mix and rate (0: as fast as possible), for as long as the run lasts."""
        rest = {key: value for key, value in self.written().items() if key not in ("frames", "loops", "size")}
        rate = math.floor(pps * 1000) / 1000 if pps else "max"  # rounded down, so as not to exceed the line rate
        if self.is_replay != (frame == CAPTURE):
            raise UsageFault(
                f"stream {self.name or self.sender}: frames of '{frame}' were requested, but captured frames have their "
                f"own sizes: measure streams with 'pcap' separately, with frames of '{CAPTURE}'"
            )
        size = {} if self.is_replay else {"size": int(frame) if frame.isdigit() else frame}
        return self.model_validate({**rest, **size, "rate": rate})

    def written(self) -> dict[str, object]:
        """The stream in the form expected by dl3gen's method 'send'."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    def smallest_bytes(self) -> int:
        """The smallest frame, including the FCS, that holds the headers and the stamp."""
        more = self.model_extra or {}
        is_ip6 = any(":" in first_of(more.get(key)) for key in ("src_ip", "dst_ip"))
        transport = 20 + 10 if more.get("protocol") == "tcp" else 8 + 18
        outer = outer_bytes(more.get("encap"))
        return 14 + (4 if "vlan" in more else 0) + outer + (40 if is_ip6 else 20) + transport + 4


def outer_bytes(encap: object) -> int:
    """The bytes that an encapsulation adds; those that dl3gen will reject add nothing."""
    if not isinstance(encap, Mapping):
        return 0
    labels = encap.get("labels", [])
    n_labels = len(labels) if isinstance(labels, list) else 1
    addresses = [str(encap[key]) for key in ("src_ip", "dst_ip") if key in encap]
    ip = 0 if not addresses else 40 if any(":" in address for address in addresses) else 20
    return OUTER_BYTES.get(str(encap.get("type")), 0) + ip + 4 * n_labels + (4 if "key" in encap else 0)


def first_of(value: object) -> str:
    """The value of a field, or the first value of a range."""
    return str(value.get("first", "")) if isinstance(value, Mapping) else str(value or "")


def amount(rate: str | float | None) -> tuple[str, float]:
    """Unit and value of a rate; '' and 1 if there is none."""
    found = RATE.fullmatch(str(rate)) if rate not in (None, "max") else None
    if not found:
        return "", 1.0
    return "".join((found[3] or "pps").split()), float(found[1]) * MULTIPLES[found[2]]


def shares(streams: Sequence[Stream]) -> list[float]:
    """Each stream's share of all frames, in proportion to the rates; equal shares if there are none."""
    units = {amount(stream.rate)[0] for stream in streams}
    if len(units) > 1:
        raise UsageFault("the rates of the streams have different units: use one unit for all, or 'max'")
    amounts = [amount(stream.rate)[1] for stream in streams]
    return [each / sum(amounts) for each in amounts] if sum(amounts) > 0 else [1 / len(streams)] * len(streams)
