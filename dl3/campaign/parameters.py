"""Parameters that a case can vary: their names, and the setup or traffic fields that their values stand for."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Fields = Mapping[str, object]
Where = Literal["setup", "traffic", "machine"]

MOST_FLOWS = 16_777_216
MOST_DESCRIPTORS = 16_384  # slots of a memif ring
UNITS_KIB = {"KiB": 1, "MiB": 1 << 10, "GiB": 1 << 20}
PAGES_KIB = (4, 2048, 1 << 20)
TABLES = ("one", "10k", "1m", "v6-1", "v6-200k")
THIS_MACHINE = "this machine"


class Unfit(Exception):
    """An invalid value; the message says what was expected."""


@dataclass(frozen=True)
class Parameter:
    """A parameter. `read` converts a value as written into fields, or raises Unfit."""

    name: str
    where: Where
    read: Callable[[str], Fields]


def whole(least: int, most: int) -> Callable[[str], int]:
    """Reads a whole number within bounds; commas may separate thousands."""

    def read(text: str) -> int:
        digits = text.replace(",", "")
        if not re.fullmatch(r"[0-9]{1,12}", digits) or not least <= int(digits) <= most:
            raise Unfit(f"a whole number from {least:,} to {most:,}")
        return int(digits)

    return read


def number(name: str, where: Where, field: str, least: int, most: int) -> Parameter:
    """A parameter with a whole number as its value."""
    read = whole(least, most)
    return Parameter(name, where, lambda text: {field: read(text)})


def choice(name: str, where: Where, field: str, *values: str) -> Parameter:
    """A parameter with a fixed set of values."""

    def read(text: str) -> Fields:
        if text not in values:
            raise Unfit(f"one of {', '.join(values)}")
        return {field: text}

    return Parameter(name, where, read)


def kib(text: str) -> int:
    """Read an amount of memory."""
    found = re.fullmatch(r"([0-9]{1,7}) ?(KiB|MiB|GiB)", text)
    if not found:
        raise Unfit("an amount like '512 MiB' or '4 GiB'")
    return int(found[1]) * UNITS_KIB[found[2]]


def read_memory(text: str) -> Fields:
    """Huge page memory of the DUT."""
    amount = kib(text) // 1024
    if not 64 <= amount <= 1 << 20:
        raise Unfit("from '64 MiB' to '1024 GiB'")
    return {"memory_mib": amount}


def read_page(text: str) -> Fields:
    """Size of a page."""
    size = kib(text)
    if size not in PAGES_KIB:
        raise Unfit("a page of '4 KiB', '2 MiB' or '1 GiB'")
    return {"page_kib": size}


def read_flows(text: str) -> Fields:
    """Flows per direction: '20,000', or '2x20000' as in the white paper."""
    read = whole(1, MOST_FLOWS)
    return {"flows": read(re.sub(r"^2 ?x ?", "", text))}


def cores(text: str) -> tuple[int, ...]:
    """Read processor numbers: '1' or '2,3'."""
    words = text.replace(" ", "").split(",")
    if not all(re.fullmatch(r"[0-9]{1,4}", word) for word in words):
        raise Unfit("processor numbers like '1' or '2,3'")
    return tuple(int(word) for word in words)


def read_lcores(text: str) -> Fields:
    """The lcores that poll port 0 and port 1 and forward what they receive, or with a third one that forwards."""
    found = cores(text)
    if len(found) not in (2, 3):
        raise Unfit("the lcores of port 0 and port 1 like '1,2', optionally with the forwarder's like '1,1,2'")
    fields: dict[str, object] = {"dut_cores": tuple(dict.fromkeys(found)), "cores": len(set(found))}
    return fields | ({"apart": text} if len(found) == 3 and len(set(found)) > 1 else {})


def read_generator_cores(text: str) -> Fields:
    """Processors of dl3gen."""
    found = cores(text)
    if len(set(found)) != len(found):
        raise Unfit("each processor only once")
    return {"generator_cores": found}


def read_descriptors(text: str) -> Fields:
    """Descriptors per queue, or slots per ring; always a power of two."""
    n = whole(64, MOST_DESCRIPTORS)(text)
    if n & (n - 1):
        raise Unfit(f"a power of two like {1 << n.bit_length() - 1} or {1 << n.bit_length()}")
    return {"descriptors": n}


def label(name: str) -> Parameter:
    """A fixed property of the machine that can only be labelled: server, processor, operating system."""

    def read(text: str) -> Fields:
        if text != THIS_MACHINE:
            raise Unfit(f"'{THIS_MACHINE}', because no other machine can be measured from here")
        return {}

    return Parameter(name, "machine", read)


def words(name: str) -> Parameter:
    """A parameter that dl3 cannot set up: it is shown as not applicable, next to the published results."""
    return Parameter(name, "machine", lambda _text: {"unset": name})


PARAMETERS: dict[str, Parameter] = {
    each.name: each
    for each in (
        Parameter("huge pages", "setup", read_memory),
        Parameter("page size", "setup", read_page),
        number("cores", "setup", "cores", 1, 512),
        Parameter("lcores", "setup", read_lcores),
        Parameter("generator cores", "setup", read_generator_cores),
        number("channels", "setup", "channels", 1, 32),
        choice("routes", "setup", "routes", *TABLES),
        number("burst", "setup", "burst", 1, 512),
        Parameter("descriptors", "setup", read_descriptors),
        choice("direction", "traffic", "direction", "unidirectional", "bidirectional", "meshed"),
        Parameter("flows", "traffic", read_flows),
        choice("distribution", "traffic", "distribution", "uniform", "sequential", "zipf"),
        choice("family", "traffic", "family", "ipv4", "ipv6"),
        choice("addresses", "traffic", "addresses", "networks", "white-paper"),
        number("ports", "machine", "ports", 2, 256),
        label("server"),
        label("CPU model"),
        label("host OS"),
        words("NUMA placement"),
        words("VMs"),
        words("flow table in a VM"),
    )
}
