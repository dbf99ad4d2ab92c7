"""What a case may vary: each parameter's name, and what its values mean for the setup or the traffic."""

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
    """A value that is none; its text says what was wanted."""


@dataclass(frozen=True)
class Parameter:
    """One word of the file; `read` turns a value as it is written into fields, or raises Unfit."""

    name: str
    where: Where
    read: Callable[[str], Fields]


def whole(least: int, most: int) -> Callable[[str], int]:
    """Reads a whole number within bounds; commas may part thousands."""

    def read(text: str) -> int:
        digits = text.replace(",", "")
        if not re.fullmatch(r"[0-9]{1,12}", digits) or not least <= int(digits) <= most:
            raise Unfit(f"a whole number from {least:,} to {most:,} was wanted")
        return int(digits)

    return read


def number(name: str, where: Where, field: str, least: int, most: int) -> Parameter:
    """A parameter that is a whole number."""
    read = whole(least, most)
    return Parameter(name, where, lambda text: {field: read(text)})


def choice(name: str, where: Where, field: str, *values: str) -> Parameter:
    """A parameter with a few values."""

    def read(text: str) -> Fields:
        if text not in values:
            raise Unfit(f"one of {', '.join(values)} was wanted")
        return {field: text}

    return Parameter(name, where, read)


def kib(text: str) -> int:
    """An amount of memory."""
    found = re.fullmatch(r"([0-9]{1,7}) ?(KiB|MiB|GiB)", text)
    if not found:
        raise Unfit("an amount like '512 MiB' or '4 GiB' was wanted")
    return int(found[1]) * UNITS_KIB[found[2]]


def read_memory(text: str) -> Fields:
    """Of huge pages, for the DUT."""
    amount = kib(text) // 1024
    if not 64 <= amount <= 1 << 20:
        raise Unfit("from '64 MiB' to '1024 GiB' was wanted")
    return {"memory_mib": amount}


def read_page(text: str) -> Fields:
    """Size of one page."""
    size = kib(text)
    if size not in PAGES_KIB:
        raise Unfit("a page of '4 KiB', '2 MiB' or '1 GiB' was wanted")
    return {"page_kib": size}


def read_flows(text: str) -> Fields:
    """'20,000' of each direction, or as the white paper writes it, '2x20000'."""
    read = whole(1, MOST_FLOWS)
    return {"flows": read(re.sub(r"^2 ?x ?", "", text))}


def cores(text: str) -> tuple[int, ...]:
    """Processors by number: '1' or '2,3'."""
    words = text.replace(" ", "").split(",")
    if not all(re.fullmatch(r"[0-9]{1,4}", word) for word in words):
        raise Unfit("processors by number were wanted, like '1' or '2,3'")
    return tuple(int(word) for word in words)


def read_lcores(text: str) -> Fields:
    """Who polls port 0 and who polls port 1, each of which forwards what it receives; or also who forwards instead."""
    found = cores(text)
    if len(found) not in (2, 3):
        raise Unfit("lcores of port 0 and of port 1 were wanted, like '1,2', or also of the forwarder, like '1,1,2'")
    fields: dict[str, object] = {"dut_cores": tuple(dict.fromkeys(found)), "cores": len(set(found))}
    return fields | ({"apart": text} if len(found) == 3 and len(set(found)) > 1 else {})


def read_generator_cores(text: str) -> Fields:
    """Of dl3gen."""
    found = cores(text)
    if len(set(found)) != len(found):
        raise Unfit("each processor once was wanted")
    return {"generator_cores": found}


def read_descriptors(text: str) -> Fields:
    """Of a queue, or slots of a ring, which have always a power of two of them."""
    n = whole(64, MOST_DESCRIPTORS)(text)
    if n & (n - 1):
        raise Unfit(f"a power of two was wanted, like {1 << n.bit_length() - 1} or {1 << n.bit_length()}")
    return {"descriptors": n}


def label(name: str) -> Parameter:
    """What can only be named, because it is as it is: a server, its processor, its system."""

    def read(text: str) -> Fields:
        if text != THIS_MACHINE:
            raise Unfit(f"'{THIS_MACHINE}' was wanted, no other can be measured from here")
        return {}

    return Parameter(name, "machine", read)


def words(name: str) -> Parameter:
    """What no bed of ours sets up by itself: it is there to be shown as not applicable, with what was published."""
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
        number("ports", "machine", "ports", 2, 64),
        label("server"),
        label("CPU model"),
        label("host OS"),
        words("NUMA placement"),
        words("VMs"),
    )
}
