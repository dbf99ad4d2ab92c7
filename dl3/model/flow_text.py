"""Flows as text, one per line: SRC DST PROTOCOL [SPORT DPORT] [vrf NAME] ACTION [idle SECONDS | ends SECONDS]."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dl3.model.fault import UsageFault

PROTOCOLS: Mapping[str, int] = {
    "icmp": 1,
    "tcp": 6,
    "udp": 17,
    "dccp": 33,
    "gre": 47,
    "esp": 50,
    "icmpv6": 58,
    "sctp": 132,
    "udplite": 136,
}
PROTOCOL_WORDS = {number: word for word, number in PROTOCOLS.items()}
ICMP = {4: PROTOCOLS["icmp"], 6: PROTOCOLS["icmpv6"]}
WITH_PORTS = frozenset(PROTOCOLS[word] for word in ("tcp", "udp", "sctp", "dccp", "udplite"))
MOST_SECONDS = 4 * 86400
MOST_NAME = 15  # characters of an interface name
EXTENSIONS = frozenset((0, 43, 44, 51, 60, 135, 139, 140))  # headers of IPv6 before the transport header (flow/key.c)
MAPPED = bytes(10) + b"\xff\xff"  # begin of an IPv4-mapped IPv6 address
MAIN_VRF = "main"  # what dl3d calls the VRF of packets that are in none
SIMPLE = ("route", "drop", "punt")
# Words that are followed by a value; those with numbers: the lowest and the highest.
NAMES = ("vrf", "dev", "mirror")
NUMBERS: Mapping[str, tuple[int, int]] = {
    "dscp": (0, 63),
    "subscriber": (1, (1 << 32) - 1),
    "idle": (1, MOST_SECONDS),
    "ends": (1, MOST_SECONDS),
}
ACTION_FORM = "route, 'via ADDRESS dev INTERFACE', 'dev INTERFACE', drop or punt"


class FlowKey(NamedTuple):
    """Addresses in network order, protocol and ports; for ICMP, the source port is the identifier."""

    src: bytes
    dst: bytes
    protocol: int
    src_port: int = 0
    dst_port: int = 0


@dataclass(frozen=True)
class FlowAction:
    """What happens to the packets of a flow. 'via' with an empty address: to the peer of the interface."""

    do: str  # route, via, drop, punt
    via: str = ""
    dev: str = ""
    dscp: int | None = None
    mirror: str = ""
    subscriber: int = 0


@dataclass(frozen=True)
class FlowSettings:
    """What a line says beside the key. 0: it does not end by itself. VRF "": the main one."""

    action: FlowAction
    vrf: str = ""
    idle_s: int = 0
    ends_s: int = 0


def address(word: str) -> bytes:
    """4 or 16 bytes."""
    try:
        found = socket.inet_pton(socket.AF_INET6 if ":" in word else socket.AF_INET, word)
    except (OSError, ValueError) as error:
        raise UsageFault(f"invalid address '{word}': expected an IPv4 or IPv6 address") from error
    if found[:12] == MAPPED:
        raise UsageFault(f"{word} is an IPv4-mapped IPv6 address: use the IPv4 address")
    return found


def address_text(packed: bytes) -> str:
    """As in a line."""
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


def number(what: str, word: str, least: int, most: int) -> int:
    """A decimal number."""
    if not (word.isascii() and word.isdigit() and len(word) <= 10 and least <= int(word) <= most):
        raise UsageFault(f"invalid {what} '{word}': expected a number from {least} to {most}")
    return int(word)


def protocol_of(word: str) -> int:
    """By name or number."""
    found = PROTOCOLS.get(word)
    if found is not None:
        return found
    if word.isascii() and word.isdigit() and len(word) <= 3 and int(word) <= 255:
        return int(word)
    raise UsageFault(f"invalid protocol '{word}': expected {', '.join(PROTOCOLS)}, or a number from 0 to 255")


def check_extension(family: int, protocol: int) -> None:
    """A flow has the protocol of the transport header."""
    if family == 6 and protocol in EXTENSIONS:
        raise UsageFault(
            f"protocol {protocol} is an extension header of IPv6: expected the protocol of the header that follows it"
        )


def is_icmp(family: int, protocol: int) -> bool:
    """Whether a flow has an identifier."""
    return protocol == ICMP[family]


def no_number(words: Sequence[str], at: int, what: str) -> None:
    """The key ends here: a number that follows was meant as a port."""
    if len(words) > at and words[at].isdecimal():
        raise UsageFault(f"{what}: unexpected '{words[at]}'")


def parse_key(words: Sequence[str]) -> tuple[FlowKey, int]:
    """The key at the begin of these words, and how many words it has."""
    if len(words) < 3:
        raise UsageFault("a flow begins with SOURCE DESTINATION PROTOCOL")
    src, dst, protocol = address(words[0]), address(words[1]), protocol_of(words[2])
    if len(src) != len(dst):
        raise UsageFault("a flow has a source and a destination of the same family")
    check_extension(4 if len(src) == 4 else 6, protocol)
    if protocol in WITH_PORTS:
        ports = [number("port", word, 0, 65535) for word in words[3:5]]
        if len(ports) < 2:
            raise UsageFault(f"a flow of {words[2]} has a source port and a destination port")
        return FlowKey(src, dst, protocol, ports[0], ports[1]), 5
    if is_icmp(4 if len(src) == 4 else 6, protocol):
        if len(words) < 4:
            raise UsageFault(f"a flow of {words[2]} has an identifier")
        no_number(words, 4, f"a flow of {words[2]} has an identifier and no ports")
        return FlowKey(src, dst, protocol, number("identifier", words[3], 0, 65535)), 4
    if protocol in ICMP.values():
        raise UsageFault(f"{words[2]} does not go with these addresses: use {'icmpv6' if len(src) == 16 else 'icmp'}")
    no_number(words, 3, f"a flow of {words[2]} has no ports")
    return FlowKey(src, dst, protocol), 3


def check_value(word: str, value: str) -> str:
    """The value that follows a word."""
    if word in NUMBERS:
        number(word, value, *NUMBERS[word])
    elif word == "via":
        address(value)
    elif not 0 < len(value.encode()) <= MOST_NAME or "/" in value:
        raise UsageFault(f"invalid name '{value}' after '{word}': expected at most {MOST_NAME} characters without '/'")
    return value


def parse_words(words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """What is done, "" if it is not said, and each other word with its value."""
    do, found = "", dict[str, str]()
    left = iter(words)
    for word in left:
        if word in SIMPLE:
            if do:
                raise UsageFault(f"'{do}' and '{word}': expected one of them")
            do = word
        elif word in NAMES or word in NUMBERS or word == "via":
            value = next(left, None)
            if value is None:
                raise UsageFault(f"expected a value after '{word}'")
            if word in found:
                raise UsageFault(f"'{word}' occurs twice")
            found[word] = check_value(word, value)
        else:
            raise UsageFault(
                f"unexpected '{word}': expected an action ({ACTION_FORM}), vrf, dscp, mirror, subscriber, idle or ends"
            )
    return do, found


def parse_settings(words: Sequence[str]) -> FlowSettings:
    """What follows the key."""
    do, found = parse_words(words)
    has_hop = "via" in found or "dev" in found
    if "via" in found and "dev" not in found:
        raise UsageFault(f"'via {found['via']}' without its interface: expected 'via ADDRESS dev INTERFACE'")
    if do and has_hop:
        raise UsageFault(f"'{do}' and a next hop: expected one of them")
    if not (do or has_hop):
        raise UsageFault(f"a flow without an action: expected {ACTION_FORM}")
    for word in ("dscp", "mirror"):
        if word in found and do in ("drop", "punt"):
            raise UsageFault(f"'{word}' is for packets that are forwarded, and the action is '{do}'")
    if "idle" in found and "ends" in found:
        raise UsageFault("'idle' and 'ends': expected one of them")
    action = FlowAction(
        do=do or "via",
        via=address_text(address(found["via"])) if "via" in found else "",
        dev=found.get("dev", ""),
        dscp=int(found["dscp"]) if "dscp" in found else None,
        mirror=found.get("mirror", ""),
        subscriber=int(found.get("subscriber", 0)),
    )
    vrf = found.get("vrf", "")
    return FlowSettings(action, "" if vrf == MAIN_VRF else vrf, int(found.get("idle", 0)), int(found.get("ends", 0)))


def key_text(key: FlowKey) -> str:
    """The begin of a line."""
    words = [address_text(key.src), address_text(key.dst), PROTOCOL_WORDS.get(key.protocol, str(key.protocol))]
    if key.protocol in WITH_PORTS:
        words += [str(key.src_port), str(key.dst_port)]
    elif is_icmp(4 if len(key.src) == 4 else 6, key.protocol):
        words.append(str(key.src_port))
    return " ".join(words)


def action_text(action: FlowAction) -> str:
    """The part of a line that is the action."""
    words = [action.do] if action.do != "via" else [*(["via", action.via] if action.via else []), "dev", action.dev]
    words += ["dscp", str(action.dscp)] if action.dscp is not None else []
    words += ["mirror", action.mirror] if action.mirror else []
    words += ["subscriber", str(action.subscriber)] if action.subscriber else []
    return " ".join(words)


def flow_text(key: FlowKey, settings: FlowSettings) -> str:
    """A line."""
    words = [key_text(key), *([f"vrf {settings.vrf}"] if settings.vrf else []), action_text(settings.action)]
    words += [f"idle {settings.idle_s}"] if settings.idle_s else []
    words += [f"ends {settings.ends_s}"] if settings.ends_s else []
    return " ".join(words)
