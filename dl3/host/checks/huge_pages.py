"""Huge pages: as many as were asked for, and as many as dl3d needs, on the nodes of the network cards."""

from collections.abc import Iterator

from dl3.host.facts.memory import Node
from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.management import cards
from dl3.host.tuning.memory import Load, needed_mib

SIZES = {"2M": 2048, "1G": 1 << 20}
SOURCE = "white paper §3.2; DPDK, Linux guide: system requirements; spdk#702"


def asked_pages(words: tuple[str, ...]) -> dict[int, int]:
    """Pages that the command line asks for, by size in KiB."""
    found, kib = dict[int, int](), 2048
    for word in words:
        key, _, value = word.partition("=")
        if key in ("hugepagesz", "default_hugepagesz"):
            kib = SIZES.get(value.upper(), kib)
        elif key == "hugepages":
            counts = [part.rpartition(":")[2] for part in value.split(",")]
            found[kib] = sum(int(count) for count in counts if count.isdigit())
    return found


def total(nodes: tuple[Node, ...], page_kib: int) -> int:
    """Pages of a size on all nodes."""
    return sum(pages.total for node in nodes for pages in node.pages if pages.page_kib == page_kib)


def check(facts: Facts) -> Iterator[Finding]:
    """The command line, then the need of one worker per node with a card."""
    for kib, n in asked_pages(facts.kernel.words).items():
        if total(facts.nodes, kib) < n:
            yield Finding(
                check="huge_pages",
                severity=Severity.BLOCKER,
                what=f"the command line asks for {n:,} huge pages of {kib // 1024} MiB, and {total(facts.nodes, kib):,} exist",
                why="memory was too short or fragmented, the CPU has no pages of this size, or a service changed the number",
                source=SOURCE,
                remedy="reserve fewer, or pages of 1 GiB on the command line, which are taken before memory fragments",
            )
    free = [nic for nic in facts.nics if nic.address not in cards(facts) and not nic.physfn]
    nodes = {facts.node_of(nic) for nic in free}
    for node, mib in needed_mib({node: Load(n_ports=1, n_workers=1) for node in nodes}).items():
        has = sum(pages.total_mib for one in facts.nodes if one.number == node for pages in one.pages)
        if has < mib:
            yield Finding(
                check="huge_pages",
                severity=Severity.BLOCKER
                if any(pages.total for one in facts.nodes for pages in one.pages)
                else Severity.SPEED,
                what=f"node {node} has {has:,} MiB of huge pages; one port with one worker needs {mib:,} MiB",
                why="without any, dl3d uses pages of 4 KiB, with more TLB misses; with too few, it does not start",
                source=SOURCE,
                remedy="'dl3 host plan' reserves what the planned ports and workers need on each node",
            )
