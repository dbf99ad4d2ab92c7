"""Two leaves with EVPN: FRR unmodified on both, Linux's bridge and VXLAN devices on both. The first one is a router of
either kind, the second one the kernel.

    a, vm -- p0, p3 [ br100, VNI 100 ]                       [ br100 ] p0, p3 -- b, vm      10.0.0.0/24, bridged
        far-a -- p2 [ br4000, L3 VNI ] p1 == underlay == p1 [ br4000 ] p2 -- far-b          10.2.N.0/24, routed

The machine's kernel may have no VRF devices: the tenant's routes are in the main table, as FRR allows.
"""

import re
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field, replace
from typing import Any

from dl3.lab.daemons import Frr
from dl3.lab.namespace import End, Lab, Namespace
from harness.router import Dl3dRouter, KernelRouter, port_name
from harness.shell import batch
from harness.wire import wait_until
from harness.wired import TOP

HOST, UNDERLAY, ROUTED, GUEST, N_LINKS = 0, 1, 2, 3, 4
VNI, L3_VNI = 100, 4000
MTU = 1450  # of hosts: 50 bytes are left for the outer headers
VM, VM_MAC = "10.0.0.9", "02:00:00:00:0c:09"
PATIENCE_S = 180.0
GUARD = "guard against flooding twice"
RESTART_S = 120  # for which zebra keeps what it finds in Linux

PORTS = {"host": port_name(HOST), "uplink": port_name(UNDERLAY), "lan": port_name(ROUTED)}  # of the guide
NUMBERED = re.compile(r"(192\.0\.2\.|10\.2\.|6500|02:00:00:00:40:0)([12])")  # exchanged on the other leaf


def guide_blocks(language: str = "") -> list[str]:
    """What the guide says to type on the first leaf: for Linux, and for FRR."""
    text = (TOP / "docs" / "guide" / f"overlays{language}.md").read_text(encoding="utf-8")
    text = text[text.index("    ip address add") :]
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)
    return ["\n".join(line[4:] for line in block.splitlines()) for block in blocks[:2]]


def on_leaf(number: int, text: str) -> str:
    """The same on the other leaf."""
    return NUMBERED.sub(lambda found: f"{found[1]}{3 - int(found[2])}", text) if number == 2 else text


def linux_lines(number: int) -> list[str]:
    """For `ip -batch`, with the names that ports have here; the VM's port is like the host's."""
    words = [line.split() for line in on_leaf(number, guide_blocks()[0]).splitlines() if line]
    assert {line[0] for line in words} == {"ip"}
    named = [" ".join(PORTS.get(word, word) for word in line[1:]) for line in words]
    return [*named, f"link set {port_name(GUEST)} master br{VNI}", f"link set {port_name(GUEST)} up"]


def frr_files(number: int) -> dict[str, str]:
    """Configurations of FRR's daemons; sessions come up at once, and hosts may move as often as they like."""
    zebra, at, bgpd = on_leaf(number, guide_blocks()[1]).partition("router bgp")
    address = f"192.0.2.{3 - number}"
    bgpd = bgpd.replace("  advertise-all-vni", "  no dup-addr-detection\n  advertise-all-vni")
    bgpd = bgpd.replace(
        " address-family ipv4", f" timers bgp 20 60\n neighbor {address} timers connect 1\n address-family ipv4"
    )
    return {"zebra": zebra, "bgpd": at + bgpd}


@dataclass
class Leaf:
    """A router with two VNIs, and FRR."""

    number: int  # 1 or 2
    lab: Lab
    router: Dl3dRouter | KernelRouter
    frr: Frr | None = field(default=None)

    @property
    def namespace(self) -> Namespace:
        """Where Linux and FRR are."""
        return self.router.namespace

    def end(self, link: int) -> End:
        """The end of a cable; no MAC address is that of the other leaf."""
        end = self.router.end(link)
        return end if self.number == 1 else replace(end, mac=f"02:00:00:00:{link:02x}:21")

    def start(self) -> None:
        """All cables are laid. Devices first, then FRR."""
        self.router.start(N_LINKS)
        batch(self.namespace, linux_lines(self.number))
        self.frr = Frr(self.namespace, frr_files(self.number), {"zebra": ["-K", str(RESTART_S)]})

    def show(self, words: str) -> dict[str, Any]:
        """FRR's reply to a show command."""
        assert self.frr
        return self.frr.show(words)

    def macs(self) -> dict[str, str]:
        """What 'show evpn mac vni all' says of each address of the L2 VNI: 'local' or 'remote'."""
        found = self.show("evpn mac vni all").get(str(VNI), {}).get("macs", {})
        return {mac: str(one["type"]) for mac, one in found.items()}

    def place_of(self, mac: str) -> str:
        """The port of the bridge behind which Linux has an address; behind the other leaf only if FRR says so."""
        shown = self.namespace.run("bridge", "fdb", "show", "br", f"br{VNI}").splitlines()
        found = [line for line in shown if line.startswith(mac) and f"master br{VNI}" in line]
        return next((line.split()[2] for line in found if ("extern_learn" in line) is (f"dev vx{VNI}" in line)), "")

    def moves_of(self, mac: str) -> int:
        """How often it was seen on the other side of the overlay than before, as BGP says.

        Of a remote address, FRR's own number is one that it prepares: it is greater by one once Linux has learnt a
        neighbour with the address, by its router solicitation for example, though the address never was local.
        """
        found = self.show(f"evpn mac vni {VNI} mac {mac}")[mac]
        return int(found[f"{found['type']}Sequence"])

    def unsupported(self, what: str) -> list[str]:
        """The effects of what dl3d names so."""
        assert isinstance(self.router, Dl3dRouter)
        return [str(row["effect"]) for row in self.router.call("unsupported")["unsupported"] if row["what"] == what]

    def is_ready(self) -> bool:
        """It has the other leaf's flood list (type 3) and prefix (type 5)."""
        other = 3 - self.number
        flooded = self.namespace.run("bridge", "fdb", "show", "dev", f"vx{VNI}")
        return f"00:00:00:00:00:00 dst 192.0.2.{other}" in flooded and f"10.2.{other}.0/24" in self.namespace.ip(
            "route"
        )

    def close(self) -> None:
        """Stop FRR and the router."""
        if self.frr:
            self.frr.close()
        self.router.close()
        self.lab.close()


class Monitor:
    """What Linux of a leaf tells about MAC addresses of bridges, from the beginning on."""

    def __init__(self, namespace: Namespace) -> None:
        self._told = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by close()
        command = ["setpriv", "--pdeathsig", "KILL", *namespace.command("bridge", "monitor", "fdb")]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._told)

    def lines_of(self, mac: str) -> list[str]:
        """All lines about an address."""
        self._told.seek(0)
        return [line for line in self._told if mac in line]

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(60)
        self._told.close()


class Overlay:
    """Both leaves with their hosts. Close it."""

    def __init__(self, kind: str) -> None:
        self.lab = Lab()
        self.leaves: list[Leaf] = []
        self.monitors: list[Monitor] = []
        try:
            for number in (1, 2):
                lab = Lab()
                is_dl3d = kind == "dl3d" and number == 1
                router = Dl3dRouter(lab, keep=True) if is_dl3d else KernelRouter(lab)
                self.leaves.append(Leaf(number, lab, router))
            self.hosts = [self._host(f"host{leaf.number}", leaf, HOST) for leaf in self.leaves]
            self.far = [self._host(f"far{leaf.number}", leaf, ROUTED) for leaf in self.leaves]
            self.vm, self._at = self._make_vm(), 0
            first, second = self.leaves
            self.lab.cable(first.end(UNDERLAY), second.end(UNDERLAY))
            self.monitors = [Monitor(leaf.namespace) for leaf in self.leaves]
            for leaf in self.leaves:
                leaf.start()
            for leaf in self.leaves:
                wait_until(leaf.is_ready, "FRR had the other leaf's flood list and prefix", PATIENCE_S)
            self._guard()
            self.announce()
            wait_until(self.is_moved, "FRR knew where the VM was", PATIENCE_S)
            self.settle()
        except BaseException:
            self.close()
            raise

    def _guard(self) -> None:
        """The table that dl3d asks for, so that workers flood."""
        leaf = self.leaves[0]
        if isinstance(leaf.router, Dl3dRouter):
            wait_until(lambda: bool(leaf.unsupported(GUARD)), "dl3d asked for the guard")
            leaf.namespace.run("sh", "-c", leaf.unsupported(GUARD)[0].split("install it: ")[1])
            wait_until(lambda: not leaf.unsupported(GUARD), "dl3d had found the guard")

    def _host(self, name: str, leaf: Leaf, link: int) -> Namespace:
        made = self.lab.namespace(name)
        self.lab.cable(leaf.end(link), End(made, "eth0", mac_of(leaf.number, link)))
        address = f"10.2.{leaf.number}.2/24" if link == ROUTED else f"10.0.0.{leaf.number}/24"
        lines = [f"link set eth0 mtu {MTU}", f"address add {address} dev eth0"]
        if link == ROUTED:
            lines.append(f"route add default via 10.2.{leaf.number}.1")
        batch(made, lines)
        return made

    def _make_vm(self) -> Namespace:
        """It has an interface at either leaf, both with its MAC address, and its IP address on one of them."""
        made = self.lab.namespace("vm")
        settings = ["net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"]
        made.run("sysctl", "-qw", *settings, "net.ipv4.conf.all.arp_ignore=1", "net.ipv4.conf.all.arp_announce=2")
        for index, leaf in enumerate(self.leaves):
            self.lab.cable(leaf.end(GUEST), End(made, f"eth{index}", VM_MAC))
            batch(made, [f"link set eth{index} mtu {MTU}"])
        batch(made, [f"address add {VM}/24 dev eth0"])
        return made

    def fix_neighbours(self) -> None:
        """Hosts keep each other's MAC addresses: nothing has to come back for a packet to leave."""
        for host, number in zip(self.hosts, (2, 1), strict=True):
            host.ip("neighbour", "replace", f"10.0.0.{number}", "lladdr", mac_of(number, HOST), "dev", "eth0")
        for leaf, host in zip(self.leaves, self.far, strict=True):
            address, mac, gateway = f"10.2.{leaf.number}.2", mac_of(leaf.number, ROUTED), leaf.end(ROUTED).mac
            leaf.namespace.ip("neighbour", "replace", address, "lladdr", mac, "dev", port_name(ROUTED))
            host.ip("neighbour", "replace", f"10.2.{leaf.number}.1", "lladdr", gateway, "dev", "eth0")

    def move(self) -> None:
        """The VM is now behind the other leaf, and says so once, as hypervisors do."""
        there = 1 - self._at
        batch(self.vm, [f"address del {VM}/24 dev eth{self._at}", f"address add {VM}/24 dev eth{there}"])
        self._at = there
        self.announce()

    def announce(self) -> None:
        """A gratuitous ARP request of the VM."""
        mac, address = bytes.fromhex(VM_MAC.replace(":", "")), socket.inet_aton(VM)
        arp = b"\0\x01\x08\0\x06\x04\0\x01" + mac + address + bytes(6) + address
        with self.vm.entered():
            wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        with wire:
            wire.bind((f"eth{self._at}", 0))
            wire.send(b"\xff" * 6 + mac + b"\x08\x06" + arp)

    def is_moved(self) -> bool:
        """Whether FRR has told Linux of both leaves where the VM is."""
        here, there = (leaf.place_of(VM_MAC) for leaf in (self.leaves[self._at], self.leaves[1 - self._at]))
        return (here, there) == (port_name(GUEST), f"vx{VNI}")

    def settle(self) -> None:
        """Workers have what Linux has."""
        for leaf in self.leaves:
            leaf.router.settle()

    def close(self) -> None:
        """Stop everything."""
        for monitor in self.monitors:
            monitor.close()
        for leaf in self.leaves:
            leaf.close()
        self.lab.close()


def mac_of(number: int, link: int) -> str:
    """MAC address of a host."""
    return f"02:00:00:00:0{number:x}:{0xA0 + link:02x}"
