"""CPU lists as kernel parameters have them: '2-5', 'domain,managed_irq,2-N', '0-31:2/4'; and masks like 'ff,00000003'."""

import re
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from dl3.host.cores import listed, read_list


def from_list(value: object) -> object:
    """A CPU list in JSON."""
    return frozenset(read_list(value)) if isinstance(value, str) else value


CpuSet = Annotated[
    frozenset[int], BeforeValidator(from_list), PlainSerializer(listed, return_type=str, when_used="json")
]

RUN = re.compile(r"(\d+|N)(?:-(\d+|N)(?::(\d+)/(\d+))?)?")


def cpus_of(text: str, last: int) -> frozenset[int] | None:
    """The CPUs of a parameter, without flags; None if the kernel would not understand it. `last`: the highest CPU."""
    found: set[int] = set()
    for part in text.strip().split(","):
        if re.fullmatch(r"[a-z_]+", part):  # a flag of isolcpus= and nohz=, or 'all'
            found |= set(range(last + 1)) if part == "all" else set()
            continue
        match = RUN.fullmatch(part)
        if not match:
            return None
        first, end = (last if one == "N" else int(one) for one in (match[1], match[2] or match[1]))
        used, group = (int(one) if one else 1 for one in (match[3], match[4]))
        if end < first or not 0 < used <= group:
            return None
        found |= {cpu for cpu in range(first, min(end, last) + 1) if (cpu - first) % group < used}
    return frozenset(found)


def flags_of(text: str) -> frozenset[str]:
    """The flags of isolcpus=."""
    return frozenset(part for part in text.split(",") if re.fullmatch(r"[a-z_]+", part))


def cpus_of_mask(text: str) -> frozenset[int]:
    """The CPUs of a mask in groups of 32 bits; empty if it is none."""
    try:
        bits = int(text.strip().replace(",", "") or "0", 16)
    except ValueError:
        return frozenset()
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def mask_of(cpus: frozenset[int]) -> str:
    """A mask, with groups of 32 bits as the kernel prints them."""
    bits, groups = sum(1 << cpu for cpu in cpus), []
    while True:
        groups.append(bits & 0xFFFFFFFF)
        bits >>= 32
        if not bits:
            break
    return ",".join([f"{groups[-1]:x}", *(f"{group:08x}" for group in reversed(groups[:-1]))])
