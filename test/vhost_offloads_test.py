"""Frames that guests leave without checksum or segmentation: Linux's own segments, and its peers, as the reference."""

import random
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml
from harness.vhost import NAMES, guest_mac
from harness.vhost_driver import (
    CHECKSUM,
    GSO_ECN,
    GSO_TCP4,
    GSO_TCP6,
    GSO_UDP,
    GSO_UDP_L4,
    GUEST_CHECKSUM,
    LEAVES,
    MERGEABLE,
    NEEDS_CHECKSUM,
    TAKES,
    Header,
    VhostDriver,
)
from harness.wire import SOL_PACKET, Wire, wait_until
from harness.wired import DL3D, Account, Port, WiredForwarder
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
from scapy.layers.l2 import GRE, Ether
from scapy.packet import Packet, Raw
from scapy.utils import checksum

from dl3.control.replies import Ports
from dl3.lab.forwarder import Forwarder
from dl3.lab.namespace import End

PACKET_VNET_HDR = 15
ROUNDS = 60
ADDRESSES = {4: ("10.0.1.2", "10.0.2.2"), 6: ("2001:db8:1::2", "2001:db8:2::2")}


@dataclass(frozen=True)
class Open:
    """A frame as a guest hands it over."""

    frame: bytes
    header: Header


def _ip(family: int) -> Packet:
    src, dst = ADDRESSES[family]
    if family == 6:
        return IPv6(src=src, dst=dst, hlim=64)
    return IP(src=src, dst=dst, ttl=64, flags="DF")


def _open(packet: Packet, size: int = 0) -> Open:
    """The packet with the sum of its pseudo header as its checksum; of segments with `size` bytes, if it is not 0."""
    whole = Ether(bytes(packet))
    l4 = whole[TCP] if TCP in whole else whole[UDP]
    data = bytes(l4)
    if IP in whole:
        ip = whole[IP]
        pseudo = socket.inet_aton(ip.src) + socket.inet_aton(ip.dst) + bytes([0, ip.proto])
        total = checksum(pseudo + len(data).to_bytes(2, "big"))
    else:
        proto = socket.IPPROTO_TCP if TCP in whole else socket.IPPROTO_UDP
        total = _pseudo6(whole, proto, len(data))
    offset = 16 if TCP in whole else 6
    frame = bytearray(bytes(whole))
    start = len(frame) - len(data)
    frame[start + offset : start + offset + 2] = (0xFFFF & ~total).to_bytes(2, "big")
    header = Header(NEEDS_CHECKSUM, csum_start=start, csum_offset=offset)
    if size:
        kind = GSO_TCP4 if IP in whole else GSO_TCP6
        header = replace(header, gso_type=kind, gso_size=size, hdr_len=start + (data[12] >> 4) * 4)
    return Open(bytes(frame), header)


def _pseudo6(whole: Packet, proto: int, length: int) -> int:
    addresses = b"".join(socket.inet_pton(socket.AF_INET6, whole[IPv6].getfieldval(key)) for key in ("src", "dst"))
    return checksum(addresses + length.to_bytes(4, "big") + bytes([0, 0, 0, proto]))


def _random(dice: random.Random, ether: Packet) -> Open:
    """A TCP packet of up to 64 KiB, with flags and options of any kind."""
    family = dice.choice((4, 6))
    ip = _ip(family)
    if family == 4:
        ip.id = dice.choice((7, 65530))
    else:
        ip.fl = dice.getrandbits(20)
    size = dice.randrange(500, 1400)
    # Linux takes options for payload as it decides whether there is more than one segment.
    payload = dice.choice((1, size - 100, size + 1, 3 * size, 20000, 64000))
    options = dice.choice(([], [("Timestamp", (1, 2))], [("NOP", None), ("NOP", None), ("Timestamp", (9, 9))]))
    flags = dice.choice(("A", "PA", "FPA", "A", "CA", "CPA", "FA"))
    tcp = TCP(sport=5000, dport=80, seq=dice.choice((1, 0xFFFFFF00)), ack=2, flags=flags, options=options)
    made = _open(ether / ip / tcp / Raw(dice.randbytes(payload)), size)
    if "C" not in flags:
        return made
    return replace(made, header=replace(made.header, gso_type=made.header.gso_type | GSO_ECN))


class _Linux:
    """Linux segments frames in software as it sends them on a cable."""

    def __init__(self, wired: WiredForwarder) -> None:
        near, far = (wired.lab.namespace(f"linux{i}", silent=True) for i in range(2))
        ends = (End(near, "near", "02:00:00:00:09:01"), End(far, "far", "02:00:00:00:09:02"))
        wired.lab.cable(*ends)
        self._wire = Wire(ends[1])
        with near.entered():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self._socket.bind(("near", 0))

    def segments(self, made: Open) -> list[bytes]:
        """What leaves."""
        self._socket.send(made.header.packed()[:10] + made.frame)
        return self._wire.drain()  # the other end has them before send returns

    def close(self) -> None:
        self._socket.close()
        self._wire.close()


@pytest.fixture
def crossed(tmp_path: Path) -> Iterator[WiredForwarder]:
    """A guest's port that is connected with a cable: frames leave with the bytes that they came with."""
    device = f"net_vhost{{index}},iface={tmp_path}/vm,queues=1,tso=1"
    ports = [
        Port("vm", device=device, keys={"mode": "xconnect", "to": "out"}),
        Port("out", keys={"mode": "xconnect", "to": "vm"}),
    ]
    with WiredForwarder(ports) as made:
        yield made


def frames_leave_as_linux_would_segment_them(crossed: WiredForwarder, tmp_path: Path) -> None:
    """TCP over both families with all flags, byte for byte; and UDP's checksums."""
    dice = random.Random(26)
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    linux = _Linux(crossed)
    copied = n = 0
    with VhostDriver(tmp_path / "vm", 1, LEAVES) as guest:
        for _ in range(ROUNDS):
            made = _random(dice, ether)
            if dice.random() < 0.2:
                made = _open(ether / _ip(dice.choice((4, 6))) / UDP(sport=1, dport=2) / Raw(dice.randbytes(99)))
            wanted = linux.segments(made)
            guest.rings[1].offer_long(made.frame, made.header)
            found: list[bytes] = []
            while len(found) < len(wanted):
                frame = crossed.wires["out"].receive(60)
                assert frame, f"{len(found)} of {len(wanted)} frames"
                found.append(frame)
            assert found == wanted, made.header
            n += 1
            copied += len(wanted) - 1
            wait_until(lambda: guest.rings[1].is_idle, "dl3d had returned the buffer")
        account = crossed.settle(n)
        assert (account.received, account.copied, account.sent) == (n, copied, n + copied)
        assert copied > ROUNDS
        assert not account.drops
    linux.close()


def _text(folder: Path, **vhost: str) -> str:
    ports = [
        {
            "name": name,
            "addresses": [f"10.0.{i + 1}.1/24", f"2001:db8:{i + 1}::1/64"],
            "vhost": {"socket": str(folder / name), "mode": "server", "offloads": "on"} | vhost,
        }
        for i, name in enumerate(NAMES)
    ]
    neighbours = [f"{ADDRESSES[family][1]} lladdr {guest_mac(1)} dev vm2" for family in (4, 6)]
    whole = {
        "ports": ports,
        "neighbours": neighbours,
        "memory": {"hugepages": "never"},
        "control": {"socket": "@SOCKET@"},
    }
    return yaml.safe_dump(whole, sort_keys=False)


def _account(dl3d: Forwarder) -> Account:
    return Account.of(dl3d.call("drops"))


def _ether(dl3d: Forwarder) -> Packet:
    mac = {port.name: port.mac for port in Ports.model_validate(dl3d.call("ports")).ports}["vm1"]
    return Ether(src=guest_mac(0), dst=mac)


def _wait_up(dl3d: Forwarder) -> None:
    def are_up() -> bool:
        return all(port.link_up for port in Ports.model_validate(dl3d.call("ports")).ports)

    wait_until(are_up, "the ports were up")


class _Pair:
    """Two guests whose frames dl3d routes."""

    def __init__(self, dl3d: Forwarder, sender: VhostDriver, receiver: VhostDriver) -> None:
        self.dl3d, self.sender, self.receiver = dl3d, sender, receiver

    def exchange(self, made: Open, frames: int) -> list[tuple[Header, bytes]]:
        """Send a frame; what arrives, so many frames."""
        before = _account(self.dl3d)
        self.sender.rings[1].offer_long(made.frame, made.header)
        found: list[tuple[Header, bytes]] = []

        def is_there() -> bool:
            found.extend(self.receiver.rings[0].take_whole())
            account = _account(self.dl3d).since(before)
            return account.received == 1 and account.is_closed and len(found) >= frames

        wait_until(is_there, f"{frames} frames had arrived")
        assert len(found) == frames
        return found


def _forwarded(frame: bytes, mac: str) -> bytes:
    """The frame as dl3d routes it to the guest at vm2."""
    packet = Ether(frame)
    packet.src, packet.dst = mac, guest_mac(1)
    if IP in packet:
        packet[IP].ttl -= 1
        del packet[IP].chksum
    else:
        packet[IPv6].hlim -= 1
    return bytes(packet)


def _is_good(frame: bytes) -> bool:
    """Whether the checksums are right."""
    again = Ether(frame)
    for layer in (IP, TCP, UDP):
        if layer in again:
            del again[layer].chksum
    return bytes(again) == frame


@pytest.mark.parametrize("takes", [TAKES, GUEST_CHECKSUM, MERGEABLE])
def a_guest_gets_open_what_it_takes_and_the_rest_finished(tmp_path: Path, takes: int) -> None:
    """The header in front of each frame says what is left to do, and the frame has the bytes that the sender wrote."""
    with Forwarder(DL3D, _text(tmp_path)) as dl3d:
        dl3d.wait_ready()
        with VhostDriver(tmp_path / "vm1", 1, LEAVES) as sender, VhostDriver(tmp_path / "vm2", 1, takes) as receiver:
            _wait_up(dl3d)
            pair = _Pair(dl3d, sender, receiver)
            out = {port.name: port.mac for port in Ports.model_validate(dl3d.call("ports")).ports}["vm2"]
            for family in (4, 6):
                payload = random.Random(family).randbytes(40000)
                tcp = _ether(dl3d) / _ip(family) / TCP(sport=1, dport=2, flags="PA") / Raw(payload)
                made = _open(tcp, 1400)
                found = pair.exchange(made, 1 if takes == TAKES else 29)
                if takes == TAKES:
                    header, frame = found[0]
                    assert frame == _forwarded(made.frame, out)
                    assert replace(header, buffers=0) == made.header
                    assert header.buffers > 1
                else:
                    assert b"".join(bytes(Ether(frame)[TCP].payload) for _, frame in found) == payload
                    assert all(_is_good(frame) for _, frame in found)
                    assert {header.flags for header, _ in found} == {0}
                made = _open(_ether(dl3d) / _ip(family) / UDP(sport=1, dport=2) / Raw(b"some bytes"))
                ((header, frame),) = pair.exchange(made, 1)
                if takes & GUEST_CHECKSUM:
                    assert (replace(header, buffers=0), frame) == (made.header, _forwarded(made.frame, out))
                else:
                    assert header.flags == 0
                    assert _is_good(frame)
        assert dl3d.stop() == 0, dl3d.stderr


def _hostile(ether: Packet, dice: random.Random) -> Iterator[Open]:
    """Frames whose headers are not true; with each, whatever comes must be harmless."""
    tcp = ether / _ip(4) / TCP(sport=1, dport=2, flags="A") / Raw(bytes(3000))
    good = _open(tcp, 1000)
    arp = bytes(ether.copy())[:12] + b"\x08\x06" + bytes(28)
    for change in ({"gso_size": 1}, {"gso_type": GSO_UDP}, {"csum_start": 65535}, {"csum_offset": 65535}):
        yield replace(good, header=replace(good.header, **change))
    yield replace(good, header=replace(good.header, gso_type=GSO_UDP_L4))
    yield Open(good.frame[:60], good.header)
    yield Open(arp, replace(good.header, csum_start=2047))
    for length in (2047, 2048, 2049, 4000):
        gre = bytes(ether / _ip(4) / GRE() / Raw(bytes(length)))[:length]
        for start in (length - 2, 2046, 2047):
            yield Open(gre, Header(NEEDS_CHECKSUM, csum_start=max(start, 0), csum_offset=1))
    for _ in range(150):
        noise = bytearray(good.frame)
        for _ in range(dice.randrange(4)):
            noise[dice.randrange(60)] = dice.getrandbits(8)
        fields = [dice.choice((0, 1, dice.getrandbits(16))) for _ in range(5)]
        kind = dice.choice((GSO_TCP4, GSO_TCP6, GSO_UDP, 0, dice.getrandbits(8)))
        yield Open(bytes(noise[: dice.randrange(14, len(noise))]), Header(dice.getrandbits(1), kind, *fields[:4]))


def what_a_guest_says_wrongly_is_named_and_hurts_nobody(tmp_path: Path) -> None:
    with Forwarder(DL3D, _text(tmp_path)) as dl3d:
        dl3d.wait_ready()
        with VhostDriver(tmp_path / "vm1", 1, LEAVES) as sender, VhostDriver(tmp_path / "vm2", 1) as receiver:
            _wait_up(dl3d)
            ring, n = sender.rings[1], 0
            ether = _ether(dl3d)
            for made in _hostile(ether, random.Random(4)):
                ring.offer_long(made.frame, made.header)
                n += 1
                wait_until(lambda: ring.is_idle, "dl3d had returned the buffer")
                receiver.rings[0].take()
            wait_until(lambda: _account(dl3d).is_closed, "the account balanced")
            account = _account(dl3d)
            assert account.received == n
            assert account.drops["offload_bad"] > 10, account.drops
            # One that is right still passes, behind an extension header.
            ip = _ip(6) / IPv6ExtHdrDestOpt()
            made = _open(ether / ip / TCP(sport=1, dport=2, flags="A") / Raw(bytes(3000)), 1000)
            assert len(_Pair(dl3d, sender, receiver).exchange(made, 3)) == 3
        assert dl3d.stop() == 0, dl3d.stderr


def a_frame_longer_than_any_packet_reaches_no_guest(tmp_path: Path) -> None:
    """It would not end within what follows a guest's memory. Ports that are tied together compare no lengths."""
    text = yaml.safe_load(_text(tmp_path))
    for port, to in zip(text["ports"], ("vm2", "vm1"), strict=True):
        del port["addresses"]
        port |= {"mode": "xconnect", "to": to}
    del text["neighbours"]
    with Forwarder(DL3D, yaml.safe_dump(text)) as dl3d:
        dl3d.wait_ready()
        with VhostDriver(tmp_path / "vm1", 1, LEAVES) as sender, VhostDriver(tmp_path / "vm2", 1, TAKES) as receiver:
            _wait_up(dl3d)
            pair = _Pair(dl3d, sender, receiver)
            longest = _ether(dl3d) / Raw(bytes(65535))
            assert pair.exchange(Open(bytes(longest), Header()), 1)[0][1] == bytes(longest)
            assert pair.exchange(Open(bytes(longest / Raw(bytes(100000))), Header()), 0) == []
            assert _account(dl3d).drops == {"tx_refused": 1}
        assert dl3d.stop() == 0, dl3d.stderr


def offloads_can_be_turned_off(tmp_path: Path) -> None:
    with Forwarder(DL3D, _text(tmp_path, offloads="off")) as dl3d:
        dl3d.wait_ready()
        with VhostDriver(tmp_path / "vm1", 1, LEAVES | TAKES) as guest:
            assert not guest.offered & (LEAVES | TAKES), hex(guest.offered)
        assert dl3d.stop() == 0, dl3d.stderr


def segmentation_of_udp_is_never_offered(tmp_path: Path) -> None:
    with Forwarder(DL3D, _text(tmp_path)) as dl3d:
        dl3d.wait_ready()
        with VhostDriver(tmp_path / "vm1", 1) as guest:
            assert guest.offered & (LEAVES | TAKES) == LEAVES | TAKES
            assert not guest.offered & (1 << 6 | 1 << 9 | 1 << 10 | 1 << 13 | 1 << 14), hex(guest.offered)
            assert guest.offered & CHECKSUM
        assert dl3d.stop() == 0, dl3d.stderr
