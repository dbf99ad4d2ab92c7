"""DPDK's l3fwd example with longest-prefix match, built by tools/build-peers."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from dl3.dut import dpdk
from dl3.dut.wired import WiredKind
from dl3.lab.endpoint import Device, Endpoint
from dl3.lab.links import GENERATOR_MACS, NETWORKS, NETWORKS_6
from dl3.lab.pair import TOP
from dl3.lab.single import started
from dl3.lab.tables import TableFiles
from dl3.model.campaign import Setup
from dl3.model.fault import UsageFault

FOLDER = TOP / "build" / "peers"
PROGRAM = FOLDER / "l3fwd" / "program"
NOTE = FOLDER / "l3fwd.json"


def rules(networks: Iterable[str], prefixes: Iterable[str]) -> str:
    """Shortest prefix first, alternating between the ports; the links' own networks to their ports."""
    given = [(prefix, i % 2) for i, prefix in enumerate(prefixes)]
    whole = sorted([*given, *((net, i) for i, net in enumerate(networks))], key=lambda row: int(row[0].split("/")[1]))
    return "".join(f"R{prefix} {port}\n" for prefix, port in whole)


@dataclass(frozen=True)
class L3fwd:
    """The main lcore forwards: otherwise it would busy-wait on the same core."""

    program: Path
    prefixes4: tuple[str, ...] = ()
    prefixes6: tuple[str, ...] = ()
    name: str = "l3fwd"
    ready_words: str = "Checking link status"

    def command(self, endpoint: Endpoint) -> Sequence[str]:
        """Write the rule files; returns the command."""
        if len(endpoint.cores) > 1:
            raise UsageFault("l3fwd: each core needs its own transmit queue, but the links have only one: use 1 core")
        rules4, rules6 = (endpoint.links.folder / f"rules{family}" for family in (4, 6))
        rules4.write_text(rules(NETWORKS, self.prefixes4), encoding="ascii")
        rules6.write_text(rules(NETWORKS_6, self.prefixes6), encoding="ascii")
        return (
            *(str(self.program), *dpdk.eal(endpoint, f"0@{endpoint.core}"), "-p", "0x3", "-P", "--no-numa"),
            *("--config=(0,0,0),(1,0,0)", "--parse-ptype", "--lookup=lpm"),
            *(f"--rx-queue-size={endpoint.descriptors}", f"--tx-queue-size={endpoint.descriptors}"),
            *(f"--eth-dest={i},{GENERATOR_MACS[i]}" for i in range(2)),
            *(f"--rule_ipv4={rules4}", f"--rule_ipv6={rules6}"),
        )

    def socket(self, _endpoint: Endpoint) -> None:
        """There is none."""

    def started(self, endpoint: Endpoint) -> AbstractContextManager[Device]:
        """See dl3.dut.kind.Subject."""
        return started(self, endpoint)

    def about(self, endpoint: Endpoint, device: Device) -> Mapping[str, object]:
        """Version as reported by EAL, and how it was built."""
        found = dpdk.about(self.command(endpoint), device)
        note = json.loads(NOTE.read_text(encoding="utf-8"))
        return {**found, "build": {key: note[key] for key in ("dpdk", "march", "burst", "edits")}}


def make(setup: Setup, _options: Mapping[str, str], build: Path) -> L3fwd:
    """With the routing table in addition to its own two routes."""
    burst = json.loads(NOTE.read_text(encoding="utf-8"))["burst"]
    if burst != setup.burst:
        raise UsageFault(
            f"{setup.dut.name}: l3fwd is built for bursts of {burst}, not {setup.burst}: run 'tools/build-peers "
            f"--burst {setup.burst} l3fwd'"
        )
    if setup.routes == "one":
        return L3fwd(PROGRAM)
    files = TableFiles(setup.routes, build / "tables")
    prefixes = tuple(files.prefixes())
    return L3fwd(PROGRAM, prefixes4=prefixes) if files.bits == 32 else L3fwd(PROGRAM, prefixes6=prefixes)


def needs() -> str:
    """See dl3.dut.kind.Kind.missing."""
    if PROGRAM.exists() and NOTE.exists():
        return ""
    return f"l3fwd is not built: {dpdk.INSTALL}, then 'tools/build-peers l3fwd'"


KIND = WiredKind(
    name="l3fwd",
    make=make,
    needs=needs,
    honours=frozenset(("dut_cores", "memory_mib", "page_kib", "channels", "routes", "burst", "descriptors")),
    extra_mib=768,  # of tables, at the size configured by tools/build-peers
    choices={"wire": ("memif", "veth")},
)
