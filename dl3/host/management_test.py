"""The management set: layouts in which a network card must not be touched, each beside one that may be."""

from collections.abc import Callable

import pytest

from dl3.host.facts.read import read
from dl3.host.fixture import Machine
from dl3.host.management import cards, interfaces, refuse_management
from dl3.model.fault import UsageFault

MANAGED, FREE = "0000:03:00.0", "0000:04:00.0"


def _plain(made: Machine) -> None:
    made.default_route(4, "eth0")


def _ip6_only(made: Machine) -> None:
    made.default_route(6, "eth0")


def _other_table(made: Machine) -> None:
    made.default_route(4, "eth0", table="100")


def _vlan(made: Machine) -> None:
    made.interface("eth0.7", kind="vlan", lower=("eth0",))
    made.default_route(4, "eth0.7")


def _bridge_on_vlan_on_bond(made: Machine) -> None:
    made.interface("bond0", kind="bond", lower=("eth0",))
    made.interface("bond0.7", kind="vlan", lower=("bond0",))
    made.interface("br0", kind="bridge", lower=("bond0.7",))
    made.default_route(6, "br0")


def _vrf(made: Machine) -> None:
    made.interface("mgmt", kind="vrf", lower=("eth0",))
    made.default_route(4, "mgmt", table="10")


def _macvlan(made: Machine) -> None:
    made.interface("macvlan0", kind="macvlan", lower=("eth0",))
    made.default_route(4, "macvlan0")


def _ssh_without_default_route(made: Machine) -> None:
    made.session("198.51.100.7", "198.51.100.1")
    made.route(4, "198.51.100.0/24", "eth0")


def _ssh_peer_routed_elsewhere_by_a_longer_prefix(made: Machine) -> None:
    made.interface("dummy0")
    made.default_route(4, "dummy0")
    made.session("203.0.113.7", "198.51.100.1")
    made.route(4, "203.0.113.0/24", "eth0")


def _ssh_over_ip6(made: Machine) -> None:
    made.session("2001:db8::7", "2001:db8::1")
    made.route(6, "2001:db8::/64", "eth0")


def _ssh_that_answers_elsewhere(made: Machine) -> None:
    made.interface("dummy0")
    made.session("198.51.100.7", "192.0.2.1")
    made.route(4, "198.51.100.0/24", "dummy0")
    made.routes[4].append({"dst": "192.0.2.1", "dev": "eth0", "table": "local", "type": "local"})


def _pf_of_a_vf(made: Machine) -> None:
    made.nic("0000:03:10.0", 0, "vf0", physfn=MANAGED)
    made.default_route(4, "vf0")


def _same_iommu_group(made: Machine) -> None:
    made.nic("0000:05:00.0", 0, "eth2")
    made.group("0000:05:00.0", "99")
    made.group(MANAGED, "99")
    made.default_route(4, "eth2")


def _one_of_two_next_hops(made: Machine) -> None:
    made.interface("dummy0")
    made.routes[4].append({"dst": "default", "nexthops": [{"dev": "dummy0"}, {"dev": "eth0"}]})


def _root_on_nfs(made: Machine) -> None:
    made.texts["/proc/mounts"] = "server:/srv / nfs4 rw,vers=4.2,addr=198.51.100.7 0 0\n"
    made.route(4, "198.51.100.0/24", "eth0")


def _ssh_on_another_port(made: Machine) -> None:
    made.remote_session("198.51.100.7", "198.51.100.1")
    made.route(4, "198.51.100.0/24", "eth0")


def _ssh_on_another_port_in_a_vrf(made: Machine) -> None:
    made.interface("mgmt", kind="vrf", lower=("eth0",))
    made.remote_session("2001:db8::7", "2001:db8::1")
    made.route(6, "2001:db8::/64", "eth0", table="10")


def _remote_shell_of_another_program(made: Machine) -> None:
    made.remote_session("198.51.100.7", "198.51.100.1", what="'ttyd'")
    made.route(4, "198.51.100.0/24", "eth0")


def _ssh_to_a_link_local_address(made: Machine) -> None:
    for name in ("eth1", "eth0"):
        made.route(6, "fe80::/64", name)
    made.remote_session("fe80::7%eth0", "fe80::1%eth0")


def _ssh_in_another_network_namespace(made: Machine) -> None:
    at = "/sys/class/net/eth0"
    for path in [one for one in made.texts if one.startswith(f"{at}/")]:
        del made.texts[path]
    del made.links[f"{at}/device"]
    made.remote_session("198.51.100.7", "198.51.100.1", is_here=False)


LAYOUTS = (
    *(_plain, _ip6_only, _other_table, _vlan, _bridge_on_vlan_on_bond, _vrf, _macvlan, _ssh_without_default_route),
    *(_ssh_peer_routed_elsewhere_by_a_longer_prefix, _ssh_over_ip6, _ssh_that_answers_elsewhere, _pf_of_a_vf),
    *(_same_iommu_group, _one_of_two_next_hops, _root_on_nfs, _ssh_on_another_port, _ssh_on_another_port_in_a_vrf),
    *(_remote_shell_of_another_program, _ssh_to_a_link_local_address, _ssh_in_another_network_namespace),
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__.strip("_"))
def protects_the_card_and_not_the_one_beside_it(layout: Callable[[Machine], None]) -> None:
    made = Machine(nics=(MANAGED, FREE))
    layout(made)
    facts = read(made.tree())
    with pytest.raises(UsageFault, match=r"0000:03:00\.0 is refused: this machine is managed through it \(.+\); use"):
        refuse_management(facts, MANAGED, "binding")
    refuse_management(facts, FREE, "binding")


def a_machine_without_routes_and_sessions_has_no_management_set() -> None:
    assert cards(read(Machine().tree())) == {}


def everything_is_protected_if_the_routes_cannot_be_read() -> None:
    made = Machine(nics=(MANAGED, FREE))
    made.texts |= {"/dl3-outputs/ip4-routes": "[]", "/dl3-outputs/ip6-routes": "[]"}
    assert cards(read(made.tree())) == {}
    tree = made.tree()
    for n in (4, 6):
        del dict(tree.texts)[f"/dl3-outputs/ip{n}-routes"]
    texts = {path: text for path, text in tree.texts.items() if not path.endswith("-routes")}
    facts = read(type(tree)(texts, tree.links))
    assert set(cards(facts)) == {MANAGED, FREE}
    assert "cannot be read" in cards(facts)[FREE]


def says_through_what_a_card_is_used() -> None:
    made = Machine(nics=(MANAGED, FREE))
    _bridge_on_vlan_on_bond(made)
    facts = read(made.tree())
    assert set(interfaces(facts)) == {"br0", "bond0.7", "bond0", "eth0"}
    assert cards(facts)[MANAGED] == "eth0: it is below br0, which has the IPv6 default route, table main"


def a_session_on_the_loopback_protects_no_card() -> None:
    made = Machine(nics=(MANAGED,))
    made.session("127.0.0.1", "127.0.0.1")
    made.routes[4].append({"dst": "127.0.0.0/8", "dev": "lo", "table": "local", "type": "local"})
    assert cards(read(made.tree())) == {}


def both_of_two_routes_of_the_same_length_are_protected() -> None:
    made = Machine(nics=(MANAGED, FREE))
    for name in ("eth0", "eth1"):
        made.route(6, "fe80::/64", name)
    made.remote_session("fe80::7", "fe80::1")
    assert set(cards(read(made.tree()))) == {MANAGED, FREE}, "no file says which one it is"


def says_which_session_it_is() -> None:
    made = Machine(nics=(MANAGED,))
    _remote_shell_of_another_program(made)
    assert cards(read(made.tree()))[MANAGED] == ("eth0: it has the route to the peer of a 'ttyd' session, table main")
