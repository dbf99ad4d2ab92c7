"""Where hosts are, what devices are like, and frames between them; changes of all of it, drawn from a seed."""

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.overlaid import (
    BRIDGES,
    DEVICES,
    ENDS,
    FAR_MAC,
    LOCAL,
    OUT,
    PORTS,
    UNDER,
    Overlaid,
    gateway,
    host_address,
    host_mac,
)
from harness.overlay_frames import (
    BROADCAST,
    DONT_FRAGMENT,
    GROUPS,
    IP4,
    IP6,
    MAGIC,
    ODD_SOURCES,
    RESERVED,
    UNKNOWN,
    VNI_FLAG,
    Dice,
    Header,
    Udp,
    ether,
    ip_packet,
    vxlan,
)
from harness.router import router_mac

N_HOSTS = 12
FREQUENT = 3  # of four frames have nothing odd
VNIS = {"vx10": (10, 11, 0xABCDEF), "vx20": (20, 21), "vx30": (30, 31)}
ZERO = "00:00:00:00:00:00"


def raw(mac: str) -> bytes:
    """Six bytes."""
    return bytes.fromhex(mac.replace(":", ""))


@dataclass
class Device:
    """A VXLAN device as it was made."""

    name: str
    family: int = 4
    vni: int = 0
    port: int = 4789
    has_zero_sums: bool = False  # takes packets without a checksum


@dataclass
class Place:
    """Where a host sends from: a port, or a remote end of a device."""

    port: int = -1
    device: str = ""
    end: int = 0


@dataclass
class Outer:
    """What surrounds a frame in VXLAN."""

    source: str
    to: str
    vni: int
    frame: bytes
    first_word: int = VNI_FLAG
    reserved: int = 0
    checksum: int | None = None


@dataclass
class World:
    """Both routers, and what was made of them."""

    both: Overlaid
    dice: Dice
    devices: dict[str, Device] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)

    def begin(self) -> None:
        """Devices and hosts, with settings at random."""
        for name in DEVICES:
            self.make(name)
        self.places = [Place(0), Place(device="vx10", end=3), Place(1), Place(2), Place(3)]
        for i in range(N_HOSTS - 5):
            self.places.append(Place(device=("vx10", "vx20", "vx30", "vx10")[i % 4], end=i % 4))

    # --- devices

    def options(self, device: Device) -> str:
        """The words of `ip link add ... type vxlan`."""
        dice = self.dice
        words = [f"id {device.vni} local {LOCAL[device.family]} dstport {device.port}"]
        words.append(dice.choice(("", "ttl 17", "ttl inherit")))
        words.append(dice.choice(("", "tos inherit", "tos 0x28")))
        words.append(dice.choice(("learning", "nolearning")))
        words.append(dice.choice(("", "", "srcport 5000 5100")))
        words.append(dice.choice(("", "ageing 0")))
        if device.family == 4:
            words += [dice.choice(("udpcsum", "noudpcsum")), dice.choice(("", "df set", "df inherit"))]
        else:
            words.append(dice.choice(("", "udp6zerocsumtx udp6zerocsumrx")))
        if dice.one_in(3):
            words.append(f"remote {ENDS[device.family][dice.randrange(len(ENDS[4]))]}")
        device.has_zero_sums = "udp6zerocsumrx" in words[-1] or "udp6zerocsumrx" in words[-2]
        return " ".join(filter(None, words))

    def make(self, name: str) -> None:
        """A device, anew."""
        dice = self.dice
        device = Device(name, dice.choice((4, 6)), dice.choice(VNIS[name]), dice.choice((4789, 4789, 4790)))
        if name in self.devices:
            self.both.run("ip", f"link del {name}")
        self.devices[name] = device
        self.both.run("ip", f"link add {name} address {DEVICES[name]} type vxlan {self.options(device)}")
        self.both.batch(self._attached(name))
        for end in ENDS[device.family][: dice.randrange(4)]:
            self.both.run("bridge", f"fdb append {ZERO} dev {name} dst {end} self")
        for side in self.both.sides:
            side.marks.forget()

    @staticmethod
    def _attached(name: str) -> list[str]:
        """The lines that put a device where it belongs."""
        if name != "vx30":
            return [f"link set {name} master {'br0' if name == 'vx10' else 'br1'}", f"link set {name} up"]
        lines = [f"address add 10.0.30.1/24 dev {name}", f"address add 2001:db8:a30::1/64 dev {name} nodad"]
        lines.append(f"link set {name} up")
        for host in range(N_HOSTS):
            for family in (4, 6):
                address = host_address(family, 30, host)
                lines.append(f"neigh replace {address} lladdr {host_mac(host)} dev {name} nud permanent")
        return lines

    # --- frames

    def _enters(self, place: Place, frame: bytes) -> tuple[int, bytes]:
        """On which link a frame comes in, and as what."""
        if place.port >= 0:
            return place.port, frame
        return self.dice.choice(UNDER), self.outside(place, frame)

    def outside(self, place: Place, frame: bytes, odd: bool = False) -> bytes:
        """A frame as a remote end sends it; odd ones have anything wrong."""
        dice, device = self.dice, self.devices[place.device]
        family = device.family
        outer = Outer(ENDS[family][place.end], LOCAL[family], device.vni, frame)
        if family == 4 or device.has_zero_sums:
            outer.checksum = dice.choice((None, 0))
        if odd:
            self._spoil(outer, family)
        inside = vxlan(outer.vni, outer.frame, outer.first_word, outer.reserved)
        data = Udp(dice.randrange(49152, 65536), device.port, inside, checksum=outer.checksum)
        tos = dice.choice((0, 0, 0, 1, 2, 3)) if odd else dice.choice((0, 0, 2))
        if outer.frame[12:14] == b"\x81\x00" and tos & 1:  # Linux would write that into the tag itself
            tos = 2
        packet = ip_packet(outer.source, outer.to, Header(tos, 64, dice.choice((0, DONT_FRAGMENT))), data)
        link = UNDER[0]
        return ether(raw(router_mac(link)), raw(FAR_MAC.format(link)), IP4 if family == 4 else IP6, packet)

    def _spoil(self, outer: Outer, family: int) -> None:
        dice = self.dice
        kind = dice.randrange(7)
        if kind in (0, 4):  # no host, as devices learn where it is
            outer.frame = outer.frame[:6] + self._stranger() + outer.frame[12:]
        if kind == 0:
            outer.vni = dice.choice((9, 10, 11, 20, 21, 30, 31))
        elif kind == 1:
            outer.first_word = dice.choice((0, 0x88000000, 0x08000001, 0xFFFFFFFF))
        elif kind == 2:
            outer.reserved = 7
        elif kind == 3:
            outer.checksum = dice.choice((0, 4711))
        elif kind == 4:
            last = 200 + dice.randrange(3)
            outer.source = f"192.0.2.{last}" if family == 4 else f"2001:db8:f::{last:x}"
        elif kind == 5:
            outer.frame = outer.frame[: min(dice.randrange(5, 40), outer.frame.index(MAGIC))]
        else:
            outer.to = gateway(family, UNDER[0])[:-1] + "1"

    def greet(self) -> list[tuple[int, bytes]]:
        """Each host sends to all."""
        return [
            self._on_own_link(self._enters(place, ether(BROADCAST, raw(host_mac(host)), 0x88B5, self.dice.data(0))))
            for host, place in enumerate(self.places)
        ]

    @staticmethod
    def _on_own_link(entry: tuple[int, bytes]) -> tuple[int, bytes]:
        """With the MAC address of the port where it comes in."""
        link, frame = entry
        return (link, raw(router_mac(link)) + frame[6:]) if link in UNDER else entry

    def routed(self, source: bytes, to: bytes) -> bytes:
        """A frame to an interface of the router."""
        dice = self.dice
        family = dice.choice((4, 6))
        nets = (OUT, 50, 30, 77)
        net = dice.choice(nets)
        if net == OUT:
            address = gateway(family, OUT)
        elif net == 77:
            address = "203.0.113.1" if family == 4 else "2001:db8:77::1"
        else:
            address = host_address(family, net, dice.randrange(N_HOSTS))
        own = host_address(family, 50, 1) if dice.one_in(2) else gateway(family, OUT)
        return ether(to, source, IP4 if family == 4 else IP6, dice.ip(own, address))

    def _stranger(self) -> bytes:
        """A sender to whom nobody sends."""
        return bytes.fromhex("02000000f1") + bytes([self.dice.number % 256])

    def _target(self) -> bytes:
        dice = self.dice
        if not dice.one_in(4):
            return raw(host_mac(dice.randrange(N_HOSTS + 3)))  # some are only written
        return dice.choice((BROADCAST, BROADCAST, *UNKNOWN, *GROUPS, *RESERVED, raw(BRIDGES["br1"])))

    def frame(self, is_remote: bool) -> tuple[int, bytes]:
        """One at random, from a remote end or from any other host."""
        dice = self.dice
        hosts = [host for host, place in enumerate(self.places) if bool(place.device) == is_remote]
        if not is_remote and (not hosts or dice.one_in(5)):
            return OUT, self.routed(raw(FAR_MAC.format(OUT)), raw(router_mac(OUT)))
        host = dice.choice(hosts)
        place, source = self.places[host], raw(host_mac(host))
        if dice.one_in(60):
            source = dice.choice((*ODD_SOURCES, *(raw(mac) for mac in DEVICES.values())))
        elif dice.one_in(40):
            source = self._stranger()
        if dice.one_in(6):
            own = DEVICES["vx30"] if place.device == "vx30" else BRIDGES["br0"]
            inner = self.routed(source, raw(own))
        else:
            inner = dice.frame(self._target(), source)
        if place.device and dice.one_in(8):
            return self._on_own_link((dice.choice(UNDER), self.outside(place, inner, odd=True)))
        return self._on_own_link(self._enters(place, inner))

    def long_frame(self) -> tuple[int, bytes]:
        """One that may be too long for its way. To be sent alone: Linux answers it, and learns from its own answer.

        Not one to a group: Linux cuts those that are too long outside, which workers never do.
        """
        self.dice.is_long = True
        link, frame = self.frame(self.dice.one_in(2))
        while any(group in frame for group in (BROADCAST, *GROUPS)):
            link, frame = self.frame(self.dice.one_in(2))
        self.dice.is_long = False
        return link, frame

    # --- changes

    def change(self) -> str:
        """One at random; its name."""
        kinds: list[Callable[[], None]] = [self._entry, self._entry, self._entry, self._flood, self._bridge_entry]
        kinds += [self._recreate, self._mtu, self._member, self._down, self._up, self._route, self._neighbour]
        kinds += [self._ageing, self._move, self._flag, self._restore, self._restore]
        chosen = self.dice.choice(kinds)
        chosen()
        return chosen.__name__

    def _device(self) -> Device:
        return self.devices[self.dice.choice(list(DEVICES))]

    def _end(self, family: int) -> str:
        return self.dice.choice(ENDS[family])

    def _own(self) -> str:
        """A port and a VNI of an entry's own."""
        return self.dice.choice(("", "", "", " port 4791", " vni 77", " port 4792 vni 78"))

    def _entry(self) -> None:
        device, dice = self._device(), self.dice
        mac = host_mac(dice.randrange(N_HOSTS + 3))
        action = dice.choice(("add", "replace", "replace", "append", "del"))
        end = "" if action == "del" and dice.one_in(2) else f" dst {self._end(device.family)}{self._own()}"
        state = "" if action == "del" else dice.choice((" static", " dynamic", " permanent", " static extern_learn"))
        self.both.run("bridge", f"fdb {action} {mac} dev {device.name}{end} self{state}")

    def _flood(self) -> None:
        device, dice = self._device(), self.dice
        action = dice.choice(("append", "append", "del"))
        mac = "01:cc:00:00:00:07" if dice.one_in(6) else ZERO
        self.both.run(
            "bridge", f"fdb {action} {mac} dev {device.name} dst {self._end(device.family)}{self._own()} self"
        )

    def _bridge_entry(self) -> None:
        dice = self.dice
        name, mac = dice.choice((*PORTS, "vx10", "vx20")), host_mac(dice.randrange(N_HOSTS + 3))
        action = dice.choice(("replace", "replace", "del"))
        state = (
            dice.choice((" static", " dynamic", " dynamic extern_learn", " static sticky")) if action != "del" else ""
        )
        self.both.run("bridge", f"fdb {action} {mac} dev {name} master{state}")

    def _recreate(self) -> None:
        self.make(self.dice.choice(list(DEVICES)))

    def _mtu(self) -> None:
        name = self.dice.choice((*PORTS, *DEVICES, "p5"))
        self.both.run("ip", f"link set {name} mtu {self.dice.choice((1300, 1400, 1430, 1450, 1500))}")

    def _member(self) -> None:
        name = self.dice.choice((*PORTS, "vx10", "vx20"))
        where = self.dice.choice(("nomaster", "master br0", "master br1"))
        self.both.run("ip", f"link set {name} {where}")

    def _down(self) -> None:
        self.both.run("ip", f"link set {self.dice.choice((*PORTS, *DEVICES, 'p6', 'br1'))} down")

    def _up(self) -> None:
        for name in (*PORTS, *DEVICES, "p6", "br1"):
            self.both.run("ip", f"link set {name} up")
        self._addresses()

    def _addresses(self) -> None:
        """What Linux forgets with an interface that goes down."""
        for family, bits in ((4, 24), (6, 64)):
            own = gateway(family, UNDER[1])[:-1] + "1"
            self.both.run("ip", f"address replace {own}/{bits} dev p6 {'nodad' if family == 6 else ''}")
            self.both.run("ip", f"neigh replace {gateway(family, 6)} lladdr {FAR_MAC.format(6)} dev p6 nud permanent")
        for i in range(len(ENDS[4]) - 1):
            for family in (4, 6):
                self.both.run("ip", f"route replace {ENDS[family][i]} via {gateway(family, UNDER[i % 2])}")
        if self.dice.one_in(2):
            self.both.run("ip", "address replace 2001:db8:a30::1/64 dev vx30 nodad")

    def _route(self) -> None:
        family, dice = self.dice.choice((4, 6)), self.dice
        end = self._end(family)
        kind = dice.randrange(6)
        if kind == 0:
            self.both.run("ip", f"route del {end}")
        elif kind == 1:
            self.both.run("ip", f"route replace blackhole {end}")
        else:
            self.both.run("ip", f"route replace {end} via {gateway(family, dice.choice(UNDER))}")

    def _neighbour(self) -> None:
        family, link = self.dice.choice((4, 6)), self.dice.choice(UNDER)
        mac = f"02:00:00:04:{link:02x}:{self.dice.randrange(4):02x}"
        self.both.run("ip", f"neigh replace {gateway(family, link)} lladdr {mac} dev p{link} nud permanent")

    def _ageing(self) -> None:
        bridge = self.dice.choice(list(BRIDGES))
        self.both.run("ip", f"link set {bridge} type bridge ageing_time {self.dice.choice((0, 30000, 30000))}")

    def _move(self) -> None:
        host = self.dice.randrange(1, N_HOSTS)  # some host is always behind a remote end, and some is not
        if self.dice.one_in(2) and host > 1:
            self.places[host] = Place(self.dice.randrange(4))
        else:
            self.places[host] = Place(device=self.dice.choice(list(DEVICES)), end=self.dice.randrange(4))

    def _flag(self) -> None:
        name = self.dice.choice((*PORTS, "vx10", "vx20"))
        word = self.dice.choice(("learning", "flood", "mcast_flood", "bcast_flood", "isolated", "neigh_suppress"))
        self.both.run("bridge", f"link set dev {name} {word} {self.dice.choice(('on', 'off'))}")

    def _restore(self) -> None:
        """Ports as they were, so that most changes find something that works."""
        for i, name in enumerate(PORTS):
            self.both.run("ip", f"link set {name} up mtu 1500 master br{i // 2}")
        for name, bridge in (("vx10", "br0"), ("vx20", "br1")):
            self.both.run("ip", f"link set {name} up mtu 1450 master {bridge}")
        for name in (*PORTS, "vx10", "vx20"):
            flags = "learning on flood on mcast_flood on bcast_flood on isolated off neigh_suppress off"
            self.both.run("bridge", f"link set dev {name} {flags}")
        for bridge in BRIDGES:
            self.both.run("ip", f"link set {bridge} up type bridge ageing_time 30000")
        self.both.run("ip", "link set vx30 up mtu 1450")
        self.both.run("ip", "link set p5 mtu 1500")
        self._up()
