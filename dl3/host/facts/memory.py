"""Memory and huge pages of each NUMA node."""

import re

from dl3.host.facts.cpus import NODES, list_in
from dl3.host.tree import Tree, number
from dl3.model.noun import Noun

SIZES_KIB = (2048, 1 << 20)


class Pages(Noun):
    """Huge pages of one size on one node."""

    page_kib: int
    total: int
    free: int

    @property
    def total_mib(self) -> int:
        """All of them."""
        return self.total * self.page_kib // 1024


class Node(Noun):
    """The memory of a NUMA node."""

    number: int
    memory_kib: int
    pages: tuple[Pages, ...] = ()
    folder: str  # with the huge pages

    def pages_of(self, page_kib: int) -> Pages | None:
        """Those of a size; None if the node has no such size."""
        return next((one for one in self.pages if one.page_kib == page_kib), None)


def number_file(folder: str, page_kib: int) -> str:
    """The file with the number of pages of a size."""
    return f"{folder}/hugepages-{page_kib}kB/nr_hugepages"


def pages_in(tree: Tree, folder: str) -> tuple[Pages, ...]:
    """The huge pages below a folder."""
    found = []
    for page_kib in SIZES_KIB:
        total = number(tree, number_file(folder, page_kib))
        if total is not None:
            free = number(tree, f"{folder}/hugepages-{page_kib}kB/free_hugepages")
            found.append(Pages(page_kib=page_kib, total=total, free=free or 0))
    return tuple(found)


def total_kib(text: str | None) -> int:
    """MemTotal."""
    found = re.search(r"MemTotal:\s+(\d+)", text or "")
    return int(found[1]) if found else 0


def only_total(text: str) -> str:
    """The line with MemTotal."""
    return "".join(line for line in text.splitlines(keepends=True) if "MemTotal:" in line)


def read_nodes(tree: Tree) -> tuple[Node, ...]:
    """All nodes; a kernel without NUMA has one."""
    numbers = sorted(list_in(tree, f"{NODES}/online"))
    if not numbers:
        folder = "/sys/kernel/mm/hugepages"
        kib = total_kib(tree.text("/proc/meminfo", only_total))
        return (Node(number=0, memory_kib=kib, pages=pages_in(tree, folder), folder=folder),)
    found = []
    for one in numbers:
        at = f"{NODES}/node{one}"
        kib = total_kib(tree.text(f"{at}/meminfo", only_total))
        found.append(
            Node(number=one, memory_kib=kib, pages=pages_in(tree, f"{at}/hugepages"), folder=f"{at}/hugepages")
        )
    return tuple(found)
