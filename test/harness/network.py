"""A router with four ports and Linux hosts around it.

    h0 -- p0 [ router ] p1 -- h1 -- far          pN has 10.0.N.1/24 and 2001:db8:aN::1/64
    h2 -- p2 [        ] p3 -- switch -- n2 n3 n4 n5   the hosts on it .2 (n3 .3, n4 .4, n5 .5); far is 10.0.9.2

h1 forwards between the router and far. Every test gets the network in its initial state (`reset`).
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dl3.lab.namespace import End, Lab, Namespace
from dl3.model.fault import Fault
from harness.router import Dl3dRouter, KernelRouter, Router, port_name, router_mac
from harness.shell import batch
from harness.wire import Wire, wait_until

N_LINKS = 4
FAR = 9
FAMILIES = (4, 6)
SMALL_MTU = 1300
BENCHMARK = {4: "198.18.0.0/16", 6: "2001:db8:f8::/48"}  # reserved for benchmarking: packets to it end at the next host


@dataclass(frozen=True)
class Host:
    """A Linux host on one of the networks."""

    name: str
    namespace: Namespace
    link: int
    number: int
    device: str = "eth0"

    def address(self, family: int) -> str:
        """Its address."""
        return network(family, self.link, self.number)

    @property
    def mac(self) -> str:
        """MAC address of its device."""
        return f"02:00:00:01:{self.link:02x}:{self.number:02x}"

    @property
    def end(self) -> End:
        """Its end of the cable."""
        return End(self.namespace, self.device, self.mac)

    def ip(self, *words: str) -> str:
        """Run the ip command on it."""
        return self.namespace.ip(*words)

    @contextlib.contextmanager
    def owning(self, *addresses: str) -> Iterator[None]:
        """With further addresses, on its loopback interface."""
        lines = [f"{address}/{128 if ':' in address else 32} dev lo" for address in addresses]
        batch(self.namespace, [f"address add {line}" for line in lines])
        try:
            yield
        finally:
            batch(self.namespace, [f"address del {line}" for line in lines])

    def wire(self) -> Wire:
        """A packet socket on its device."""
        return Wire(self.end)


def network(family: int, link: int, number: int) -> str:
    """An address on network `link`."""
    return f"10.0.{link}.{number}" if family == 4 else f"2001:db8:a{link}::{number}"


def router_address(family: int, link: int) -> str:
    """The router address that its hosts use: for IPv6 the link-local one, as in a router advertisement."""
    return network(4, link, 1) if family == 4 else f"fe80::ff:fe00:{link << 8 | 1:x}"


def length(family: int) -> int:
    """Prefix length of all networks here."""
    return 24 if family == 4 else 64


class Network:
    """The network in the picture above; close() removes it."""

    def __init__(self, kind: str) -> None:
        self.lab = Lab()
        self.hosts: dict[str, Host] = {}
        self.router: Router | None = None
        try:
            self.router = Dl3dRouter(self.lab) if kind == "dl3d" else KernelRouter(self.lab)
            self._build()
            self.router.start(N_LINKS)
            self.reset()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        for link in range(3):
            self.lab.cable(self.the_router.end(link), self._host(f"h{link}", link, 2).end)
        switch = self.lab.namespace("switch", silent=True)
        switch.ip("link", "add", "br0", "up", "type", "bridge", "mcast_snooping", "0")
        self.lab.cable(self.the_router.end(3), End(switch, "r", "02:00:00:02:00:01"))
        for number in range(2, 6):
            self.lab.cable(
                End(switch, f"n{number}", f"02:00:00:02:00:{number:02x}"), self._host(f"n{number}", 3, number).end
            )
        for device in ("r", *(f"n{number}" for number in range(2, 6))):
            switch.ip("link", "set", device, "master", "br0")
        far = self._host("far", FAR, 2)
        self.lab.cable(End(self["h1"].namespace, "eth1", "02:00:00:01:09:01"), far.end)
        for host in self.hosts.values():
            self.settle_in(host)
        self._let_forward(self["h1"])

    def _host(self, name: str, link: int, number: int) -> Host:
        self.hosts[name] = Host(name, self.lab.namespace(name), link, number)
        return self.hosts[name]

    def settle_in(self, host: Host) -> None:
        """Set a host's device up; restore its addresses and default route if it has lost them."""
        lines = [f"link set {host.device} up"]
        for family in FAMILIES:
            lines.append(f"address replace {host.address(family)}/{length(family)} dev {host.device}")
            via = router_address(family, host.link) if host.link != FAR else network(family, FAR, 1)
            lines.append(f"route replace default via {via} dev {host.device}")
        batch(host.namespace, lines)

    def _let_forward(self, host: Host) -> None:
        host.namespace.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        host.namespace.run("sysctl", "-qw", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0")
        inside = [f"address add {network(family, FAR, 1)}/{length(family)} dev eth1" for family in FAMILIES]
        batch(host.namespace, [*inside, *(f"route add blackhole {prefix}" for prefix in BENCHMARK.values())])

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    @property
    def the_router(self) -> Router:
        """The router, which exists once the network is being built."""
        assert self.router
        return self.router

    @property
    def dl3d(self) -> Dl3dRouter | None:
        """The router if it is dl3d."""
        return self.router if isinstance(self.router, Dl3dRouter) else None

    def ip(self, *lines: str) -> None:
        """Run lines of `ip -batch` in the router's namespace; returns once they apply to packets."""
        batch(self.the_router.namespace, lines)
        self.the_router.settle()

    def sysctl(self, **settings: str) -> None:
        """Sysctls of the router's namespace, `ipv4__conf__p0__rp_filter="1"`; returns once they apply to packets."""
        words = [f"net.{key.replace('__', '.')}={value}" for key, value in settings.items()]
        self.the_router.namespace.run("sysctl", "-qw", *words)
        self.the_router.settle()

    @contextlib.contextmanager
    def while_set(self, **settings: str) -> Iterator[None]:
        """The router's namespace with other sysctls, restored afterwards."""
        keys = [f"net.{key.replace('__', '.')}" for key in settings]
        found = self.the_router.namespace.run("sysctl", "-n", *keys).split()
        self.sysctl(**settings)
        try:
            yield
        finally:
            self.sysctl(**dict(zip(settings, found, strict=True)))

    @contextlib.contextmanager
    def rule(self, family: int, words: str) -> Iterator[None]:
        """With a policy routing rule."""
        namespace = self.the_router.namespace
        batch(namespace, [f"rule add {words}"], f"-{family}")
        try:
            self.the_router.settle()
            yield
        finally:
            batch(namespace, [f"rule del {words}"], f"-{family}")
        self.the_router.settle()

    @contextlib.contextmanager
    def through_workers(self, n_packets: int) -> Iterator[None]:
        """In the block, dl3d's workers forward at least this many packets, as opposed to Linux on their behalf."""
        before = self.dl3d.closed_account() if self.dl3d else None
        yield
        if self.dl3d and before:
            since = self.dl3d.closed_account().since(before)
            assert since.sent - since.injected >= n_packets, since

    def names_unsupported(self, word: str) -> bool:
        """Whether dl3d reports something with this word as unsupported by workers; the kernel supports everything."""
        return not self.dl3d or word in str(self.dl3d.call("unsupported"))

    def names_supported(self, word: str) -> bool:
        """Whether dl3d reports nothing of the kind."""
        return not self.dl3d or word not in str(self.dl3d.call("unsupported"))

    @contextlib.contextmanager
    def shrunk(self, link: int, host: str) -> Iterator[None]:
        """A link with an MTU of SMALL_MTU at both of its ends."""
        self[host].ip("link", "set", self[host].device, "mtu", str(SMALL_MTU))
        self.ip(f"link set {port_name(link)} mtu {SMALL_MTU}")
        try:
            yield
        finally:
            self[host].ip("link", "set", self[host].device, "mtu", "1500")
            self.ip(f"link set {port_name(link)} mtu 1500")

    def forget(self) -> None:
        """Flush all neighbours, path MTUs and redirects, everywhere."""
        for namespace in (self.the_router.namespace, *(host.namespace for host in self.hosts.values())):
            for family in ("-4", "-6"):
                namespace.ip(family, "neighbour", "flush", "all")
                namespace.ip(family, "route", "flush", "cache")

    def has_died(self) -> bool:
        """dl3d is gone: the next test needs a new network."""
        try:
            if self.dl3d:
                self.dl3d.call("status")
        except (Fault, OSError):
            return True
        return False

    def reset(self) -> None:
        """Restore addresses and routes as in the picture, whatever a test has left behind."""
        router = self.the_router
        for family in ("-4", "-6"):
            batch(router.namespace, CLEAN, family=family, may_fail=True)
        batch(router.namespace, ["nexthop flush"], may_fail=True)
        batch(router.namespace, self._first_lines())
        # Linux completes duplicate address detection asynchronously, and uses other source addresses until then.
        wait_until(lambda: not router.namespace.ip("-6", "address", "show", "tentative"), "all addresses were taken")
        router.settle()

    def _first_lines(self) -> Sequence[str]:
        lines = []
        for link in range(N_LINKS):
            port = port_name(link)
            lines += [
                f"address flush dev {port} scope global",
                f"link set {port} address {router_mac(link)} mtu 1500 up",
            ]
            lines += [f"address add {network(family, link, 1)}/{length(family)} dev {port}" for family in FAMILIES]
        return lines + [
            f"route add {network(family, FAR, 0)}/{length(family)} via {self['h1'].address(family)}"
            for family in FAMILIES
        ]

    def close(self) -> None:
        """Stop the router, remove all namespaces."""
        if self.router:
            self.router.close()
        self.lab.close()


class NetworkPool:
    """Keeps a network for the next test; builds a new one if there is none."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._network: Network | None = None

    def take(self) -> Network:
        """The network in its initial state."""
        if self._network:
            self._network.reset()
        else:
            self._network = Network(self.kind)
        return self._network

    def clear(self) -> None:
        """Remove it."""
        if self._network:
            self._network.close()
        self._network = None


CLEAN = ("route flush table main proto boot", "route flush table 100", "neighbour flush all")
