"""The lab router-on-a-laptop: dl3d routes between two Linux hosts, each in a namespace of its own."""

from dl3.lab.command import run
from dl3.lab.echo import INTERFACE
from dl3.lab.kept import Place
from dl3.lab.kind import Kind, Settings, loads_of
from dl3.lab.links import DUT_ADDRESSES, DUT_MACS, GENERATOR_ADDRESSES, GENERATOR_MACS, NAMES
from dl3.lab.namespace import End
from dl3.lab.namespace import Lab as Namespaces
from dl3.lab.switches import QUIET
from dl3.model.lab import Accelerator, Card, Leg, Station, Topology

NAME = "router-on-a-laptop"
HOSTS = ("host1", "host2")


def topology_of(_settings: Settings, accelerator: Accelerator) -> Topology:
    """host1, the router, host2, and back."""
    cards = [Card(port=port, mac=mac) for port, mac in zip(NAMES, GENERATOR_MACS, strict=True)]
    programs = ("ping", "Linux")
    return Topology(
        lab=NAME,
        switch="dl3d-hosts",
        accelerator=accelerator,
        stations=tuple(
            Station(name=name, program=program, cards=(card,))
            for name, program, card in zip(HOSTS, programs, cards, strict=True)
        ),
        legs=(
            Leg(enters=NAMES[0], node="router", leaves=NAMES[1], to=HOSTS[1]),
            Leg(enters=NAMES[1], node="router", leaves=NAMES[0], to=HOSTS[0]),
        ),
        stream={"dst_ip": GENERATOR_ADDRESSES[1]},
    )


def lay_hosts(topology: Topology, place: Place) -> None:
    """Namespaces, veth links and addresses. Neighbours are permanent: no frame besides those of the load is sent."""
    router = place.namespace
    run(["ip", "netns", "add", router.name])
    router.run("sysctl", "-qw", *QUIET)
    for n, station in enumerate(topology.stations):
        host = place.host(station.name)
        run(["ip", "netns", "add", host.name])
        host.run("sysctl", "-qw", *QUIET)
        host.ip("link", "set", "lo", "up")
        Namespaces().cable(End(router, NAMES[n], DUT_MACS[n]), End(host, INTERFACE, GENERATOR_MACS[n]))
        gateway = DUT_ADDRESSES[n].partition("/")[0]
        host.ip("address", "add", f"{GENERATOR_ADDRESSES[n]}/24", "dev", INTERFACE)
        host.ip("neighbour", "replace", gateway, "lladdr", DUT_MACS[n], "dev", INTERFACE)
        host.ip("route", "add", "default", "via", gateway)


def first_commands(place: Place) -> list[tuple[str, str]]:
    """What to type when it is up, and what to look at."""
    inside, socket = f"ip netns exec {place.host(HOSTS[0]).name}", place.folder / "dl3d.sock"
    other = GENERATOR_ADDRESSES[1]
    return [
        (f"{inside} ping -c 3 {other}", "host1 reaches host2; the TTL of a reply is 63: one router was on the way"),
        (f"{inside} traceroute -n {other}", "the router's address is the first line"),
        (f"dl3 show ports --socket {socket}", "left and right have received and sent the same numbers"),
        (f"dl3 show routes --socket {socket}", "the networks that it knows, and behind which port each is"),
        (f"dl3 lab {NAME} measure", "pings at three rates, and where any were lost"),
    ]


LAPTOP = Kind(
    NAME,
    lambda settings, accelerator: (topology_of(settings, accelerator),),
    loads={"none": loads_of(100, 1_000, 10_000, size=102)},  # 102: that of "ping", with its FCS
)
