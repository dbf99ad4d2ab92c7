"""Isolated cores and the nodes of cards."""

from dl3.host.checks.wrong_node import check
from dl3.host.fixture import Machine, found


def names_a_card_far_from_the_isolated_cores() -> None:
    made = Machine(n_nodes=2, nics=("0000:03:00.0", "0000:83:00.0"), nic_nodes=(0, 1))
    made.isolate("2-3")
    assert found(check, made) == [("speed", "network card 0000:83:00.0 is on node 1, which has no isolated CPU")]
    made.default_route(4, "eth1")
    assert found(check, made) == [], "it is the management card"
