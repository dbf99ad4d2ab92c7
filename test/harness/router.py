"""The two routers for every test of Linux as control plane: the kernel alone, and dl3d with it.

Both are configured in their namespace by the same commands; the ports have the same names, addresses and MACs there.
"""

import time
from typing import Any, Protocol

import pytest

from dl3.lab.forwarder import Forwarder
from dl3.lab.namespace import End, Lab, Namespace
from dl3.model.fault import Fault
from harness.wired import DL3D, Account, Port, config_text

# The control is run rarely: the kernel's behaviour only changes with the kernel.
ROUTERS = (pytest.param("kernel", marks=pytest.mark.long), "dl3d")
# The same for both: dl3d changes no settings in a namespace that an operator named.
SETTINGS = {
    "net.ipv4.ip_forward": "1",
    "net.ipv6.conf.all.forwarding": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.fib_multipath_hash_policy": "1",
    "net.ipv6.fib_multipath_hash_policy": "1",
    "net.ipv4.icmp_ratelimit": "0",
    "net.ipv6.icmp.ratelimit": "0",
    "net.ipv4.icmp_echo_ignore_broadcasts": "0",
}


PATIENCE_S = 60.0
READY_S = 300.0  # in a guest a start takes 15 s of an emulated processor, which others may need as well
# Not net_af_packet: the kernel reassembles IPv4 fragments before its sockets see them.
DEVICE = "net_af_xdp{index},iface={name}"


def router_mac(link: int) -> str:
    """MAC address of the router's port p0, p1..."""
    return f"02:00:00:00:{link:02x}:01"


def port_name(link: int) -> str:
    """Name of that port, in the router's namespace."""
    return f"p{link}"


class Router(Protocol):
    """The device in the middle."""

    name: str
    namespace: Namespace  # where `ip` and similar commands run

    def end(self, link: int) -> End:
        """The namespace into which the cable of a port leads."""

    def start(self, n_links: int) -> None:
        """All cables are connected."""

    def settle(self) -> None:
        """Return once the configuration applies to packets."""

    def check(self) -> None:
        """Fail if packets are missing from the accounting."""

    def close(self) -> None:
        """Stop what was started."""


def _namespace(lab: Lab) -> Namespace:
    return _set(lab.namespace("router"))


def _set(made: Namespace) -> Namespace:
    made.run("sysctl", "-qw", *(f"{key}={value}" for key, value in SETTINGS.items()))
    return made


class KernelRouter:
    """The control: Linux forwards by itself."""

    name = "kernel"

    def __init__(self, lab: Lab) -> None:
        self.namespace = _namespace(lab)

    def end(self, link: int) -> End:
        """Cables end in its own ports."""
        return End(self.namespace, port_name(link), router_mac(link))

    def start(self, n_links: int) -> None:
        """Nothing to start."""

    def settle(self) -> None:
        """Always up to date."""

    def check(self) -> None:
        """The kernel has no such accounting."""

    def close(self) -> None:
        """Removed with its namespace."""


class Dl3dRouter:
    """dl3d with Linux as control plane: cables end outside of Linux, TAP interfaces are in the router's namespace."""

    name = "dl3d"

    def __init__(self, lab: Lab, device: str = DEVICE, keep: bool = False) -> None:
        self.namespace = _namespace(lab)
        self._device, self._keep = device, keep
        self._wires = lab.namespace("wires", silent=True)
        self.forwarder: Forwarder | None = None

    def end(self, link: int) -> End:
        """Cables end in an otherwise unused namespace."""
        return End(self._wires, port_name(link), router_mac(link))

    def start(self, n_links: int) -> None:
        """Start dl3d on all cables, with its TAP interfaces in the router's namespace."""
        self._start(n_links, {"namespace": self.namespace.name, "keep": self._keep})

    def _start(self, n_links: int, linux: dict[str, Any]) -> None:
        text = config_text(
            [Port(port_name(link), device=self._device) for link in range(n_links)], memory={"hugepages": "never"}
        )
        self.forwarder = Forwarder(DL3D, text, self._wires, linux=linux)
        try:
            self.forwarder.wait_ready(READY_S)
        except Fault:
            self.close()
            raise

    def start_privately(self, n_links: int) -> None:
        """The same with a namespace of dl3d's own, in which it keeps Linux from flooding what workers flood."""
        self._start(n_links, {"keep": self._keep})
        assert self.forwarder
        self.namespace = _set(self.forwarder.taps)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call one method of dl3d's control socket."""
        assert self.forwarder, "dl3d runs"
        return self.forwarder.call(method, **params)

    def differences(self) -> list[str]:
        """The result of verify; an error (such as a dump in progress) counts as one difference."""
        try:
            reply = self.call("verify")
        except Fault as error:
            return [str(error)]
        return [str(line) for line in reply["listed"]]

    def settle(self) -> None:
        """Wait until the mirror is in sync and workers use what Linux has."""
        deadline = time.monotonic() + PATIENCE_S
        while found := self.differences():
            if time.monotonic() > deadline:
                raise AssertionError(f"dl3d does not follow Linux: {'; '.join(found[:10])}")
            time.sleep(0.01)

    def account(self) -> Account:
        """The accounting of all packets."""
        return Account.of(self.call("drops"))

    def closed_account(self) -> Account:
        """A reading in which received + injected + copied = sent + punted + dropped: no packets were in flight."""
        deadline = time.monotonic() + PATIENCE_S
        while not (account := self.account()).is_closed and time.monotonic() < deadline:
            time.sleep(0.01)  # and judge the reading from that moment: neighbour discovery never rests
        assert account.is_closed, f"{account}; {self.call('taps')}; {self.call('workers')}; {self.call('ports')}"
        return account

    def check(self) -> None:
        """Every packet is in the accounting once no packets are in flight."""
        self.closed_account()

    def close(self) -> None:
        """Stop dl3d."""
        if self.forwarder:
            self.forwarder.close()
            self.forwarder = None
