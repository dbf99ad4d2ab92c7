"""Forwarding decisions for an address: those of Linux and of dl3d, in the same form."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_network
from math import gcd
from typing import Any

from dl3.lab.namespace import Namespace
from harness.router import Dl3dRouter

Way = tuple[str, str, int]  # next hop or "" if on-link, interface, weight

# How `ip route get` reports routes without a destination.
ERRORS = {
    "Network is unreachable": "no_route",
    "No route to host": "unreachable",
    "Permission denied": "prohibit",
    "Invalid argument": "blackhole",
}
OURS = ("local", "broadcast", "anycast")


@dataclass(frozen=True)
class Decision:
    """`kind` is unicast, local, or why it is dropped; "linux": left to Linux. No prefix: not reported.

    `is_cached`: Linux answered from the cache entry of an IPv6 next-hop object, which all routes via the object share:
    one of the ways is right, the prefix and the others may be those of another route.
    """

    kind: str
    prefix: str | None = None
    ways: frozenset[Way] = frozenset()
    is_cached: bool = False


def _prefix(text: str, family: int) -> str:
    if text == "default":
        return "0.0.0.0/0" if family == 4 else "::/0"
    return str(ip_network(text))


def _shares(ways: Iterable[Way]) -> frozenset[Way]:
    """Duplicate next hops are merged, adding their weights; weights are reduced to lowest terms."""
    weights: Counter[tuple[str, str]] = Counter()
    for via, interface, weight in ways:
        weights[via, interface] += weight
    common = gcd(*weights.values()) or 1
    return frozenset((via, interface, weight // common) for (via, interface), weight in weights.items())


def _way(hop: dict[str, Any]) -> Way:
    via = hop.get("gateway") or hop.get("via", {}).get("host", "")
    return via, hop["dev"], hop.get("weight", 1)


def _linux_decision(route: dict[str, Any], family: int) -> Decision:
    kind = route.get("type", "unicast")
    if kind in OURS:
        return Decision("local", _prefix(route["dst"], family))
    hops = [hop for hop in route.get("nexthops", [route]) if "dead" not in hop["flags"]]
    is_cached = family == 6 and "nhid" in route
    prefix = None if is_cached else _prefix(route["dst"], family)
    return Decision(kind, prefix, _shares(_way(hop) for hop in hops), is_cached)


def prefixes_of_objects(namespace: Namespace) -> frozenset[str]:
    """IPv6 prefixes routed via next-hop objects.

    For them, Linux also answers that the network is unreachable when the route of the object's cache entry was deleted.
    """
    words = ["ip", "-j", "-n", namespace.name, "-6", "route", "show", "table", "all"]
    routes = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=60).stdout)
    return frozenset(_prefix(route["dst"], 6) for route in routes if "nhid" in route)


def ask_linux(namespace: Namespace, addresses: Iterable[str], source: str, port: str) -> list[Decision]:
    """Linux's decisions for packets that arrive on a port from a source address."""
    lines = [f"route get fibmatch {address} from {source} iif {port}" for address in addresses]
    words = ["ip", "-j", "-n", namespace.name, "-force", "-batch", "-"]
    done = subprocess.run(words, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60)
    failed = re.findall(r"RTNETLINK answers: (.*)\nCommand failed -:(\d+)", done.stderr)
    errors = {int(number) - 1: Decision(ERRORS[words]) for words, number in failed}
    answers = iter(json.loads(line)[0] for line in done.stdout.splitlines() if line.strip())
    family = 6 if ":" in source else 4
    return [errors[i] if i in errors else _linux_decision(next(answers), family) for i in range(len(lines))]


def _worker_paths(reply: dict[str, Any]) -> frozenset[Way]:
    if reply["route_kind"] == "connected":
        return frozenset({("", reply["port"], 1)})
    members = reply.get("members", [reply | {"weight": 1}])
    return _shares((member["via"] or "", member["port"], member["weight"]) for member in members)


def ask_workers(router: Dl3dRouter, address: str) -> tuple[Decision, bool]:
    """dl3d's decision for an address, and whether it reports that Linux and the workers agree."""
    reply = router.call("route", address=address)
    is_sure = reply["workers_agree"] and reply["linux"]["agrees"] is True
    if not reply["found"]:
        return Decision("no_route"), is_sure
    kind = reply["route_kind"]
    if kind in ("connected", "via", "group"):
        return Decision("unicast", reply["prefix"], _worker_paths(reply)), is_sure
    return Decision(kind, reply["prefix"]), is_sure


def is_left(workers: Decision) -> bool:
    """Whether workers leave the packet to Linux, which then handles it."""
    return workers.kind == "linux"


def is_same(linux: Decision, workers: Decision, ports: Iterable[str]) -> bool:
    """Whether a packet is handled as by Linux alone; packets that leave on no port must be left to Linux."""
    if linux.kind == "unicast" and not linux.is_cached and not {way[1] for way in linux.ways} <= set(ports):
        return is_left(workers) and linux.prefix in (None, workers.prefix)
    if is_left(workers):
        return True
    if linux.is_cached:
        same = {way[:2] for way in linux.ways} & {way[:2] for way in workers.ways}
        return workers.kind == linux.kind and bool(same)
    if linux.kind in ERRORS.values():
        return workers.kind == linux.kind
    return (workers.kind, workers.ways) == (linux.kind, linux.ways) and linux.prefix in (None, workers.prefix)
