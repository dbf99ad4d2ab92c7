"""Huge pages asked for and needed."""

import pytest

from dl3.host.checks.huge_pages import asked_pages, check
from dl3.host.fixture import Machine, found

NODE = "/sys/devices/system/node/node{}/hugepages/hugepages-{}kB/nr_hugepages"


@pytest.mark.parametrize(
    ("line", "pages"),
    [
        ("hugepages=8", {2048: 8}),
        ("hugepagesz=1G hugepages=0:1,1:3 hugepagesz=2M hugepages=512", {1 << 20: 4, 2048: 512}),
        ("default_hugepagesz=1G hugepages=4", {1 << 20: 4}),
        ("quiet", {}),
    ],
)
def reads_what_the_command_line_asks_for(line: str, pages: dict[int, int]) -> None:
    assert asked_pages(tuple(line.split())) == pages


def names_too_few_pages() -> None:
    made = Machine()
    made.words("hugepagesz=1G hugepages=4")
    made.texts[NODE.format(0, 1 << 20)] = "3\n"
    assert found(check, made) == [("blocker", "the command line asks for 4 huge pages of 1024 MiB, and 3 exist")]


def names_the_node_of_the_card_although_another_has_pages() -> None:
    made = Machine(n_nodes=2, nic_nodes=(1,))
    made.texts[NODE.format(0, 2048)] = "4096\n"
    (severity, what), *rest = found(check, made)
    assert (severity, rest) == ("blocker", [])
    assert what.startswith("node 1 has 0 MiB of huge pages; one port with one worker needs ")
    made.texts[NODE.format(1, 2048)] = "4096\n"
    assert found(check, made) == []


def a_machine_without_any_is_only_slower() -> None:
    assert [severity for severity, _ in found(check, Machine())] == ["speed"]
