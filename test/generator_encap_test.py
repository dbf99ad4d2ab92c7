"""Streams in MPLS, MPLS over UDP, GRE and VXLAN: as scapy and tshark read them, and as dl3gen receives them again."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from harness.answers import CORES, DL3GEN, PATIENCE_S, THERE, Bench, flood
from harness.wire import wait_until
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet
from scapy.utils import RawPcapReader, wrpcap

from dl3.control.generator import Results, StreamResult
from dl3.lab.generator import Generator
from dl3.model.generator_flows import Stream, encap_ids, flows_of, n_flows, tuples

FRAMES = 32
IP4 = {"src_ip": "192.0.2.1", "dst_ip": "192.0.2.2"}
IP6 = {"src_ip": "2001:db8:ffff::1", "dst_ip": "2001:db8:ffff::2"}
TO_IP6 = {"dst_ip": {"first": "2001:db8::ff00:0", "count": 4, "random": True}, "protocol": "tcp"}
STAMP_LIKE = 0xD3000  # labels that begin as the stamps of dl3gen do
ENCAPS: dict[str, dict[str, Any]] = {
    "mpls": {"encap": {"type": "mpls", "labels": {"first": 16, "count": 8, "random": True}}},
    "mpls-deep": {"encap": {"type": "mpls", "labels": [1, 0, 17, 1048575], "ttl": 3}, "vlan": 5, **TO_IP6},
    "udp": {"encap": {"type": "mpls-udp", "labels": [{"first": STAMP_LIKE, "count": 256}], **IP4}},
    "udp-deep": {
        "encap": {"type": "mpls-udp", "labels": [STAMP_LIKE, 2], **IP6},
        "vlan": {"id": 7, "priority": 3},
        **TO_IP6,
    },
    "udp-none": {"encap": {"type": "mpls-udp", "labels": 3, "checksum": False, "src_port": 5, **IP6}},
    "gre": {"encap": {"type": "gre", **IP4}},
    "gre-key": {"encap": {"type": "gre", "key": {"first": 4294967290, "count": 6}, **IP6}, **TO_IP6},
    "gre-mpls": {"encap": {"type": "gre", "key": 9, "labels": [5, {"first": 100, "count": 3}], **IP4}, **TO_IP6},
    "gretap": {
        "encap": {"type": "gretap", "inner_dst_mac": {"first": "02:00:00:00:00:99", "count": 5, "random": True}, **IP6}
    },
    "vxlan": {"encap": {"type": "vxlan", "vni": {"first": 16777200, "count": 16}, **IP4}, "vlan": 9},
    "vxlan6": {
        "encap": {"type": "vxlan", "vni": 5, "inner_src_mac": {"first": "02:00:00:00:00:01", "count": 7}, **IP6},
        **TO_IP6,
    },
    "vxlan-none": {"encap": {"type": "vxlan", "vni": 0, "checksum": False, "ttl": 255, **IP6}},
}


def _streams() -> list[Stream]:
    fields = {"src_ip": {"first": "10.0.0.1", "count": 3}, "dst_ip": {"first": "10.1.0.0", "count": 4, "random": True}}
    return [
        flood(name=name, id=i, frames=FRAMES, size=200 + 33 * i, **({} if "protocol" in keys else fields) | keys)
        for i, (name, keys) in enumerate(ENCAPS.items())
    ]


def _layers(packet: Packet, kind: type[Packet]) -> list[Packet]:
    return [layer for layer in packet.iterpayloads() if type(layer) is kind]


def _built_again(packet: Packet) -> bytes:
    """The packet with lengths and checksums of scapy, but for checksums that are not there."""
    again = packet.copy()
    for layer in again.iterpayloads():
        fields = {IP: ("len", "chksum"), IPv6: ("plen",), UDP: ("len", "chksum"), TCP: ("chksum",)}.get(type(layer), ())
        for field in fields:
            if field != "chksum" or layer.chksum:
                layer.delfieldval(field)
    return bytes(again)


def _id_of(packet: Packet) -> int:
    labels, tunnels = _layers(packet, MPLS), [*_layers(packet, VXLAN), *_layers(packet, GRE)]
    if labels:
        return int(labels[-1].label)
    return int((tunnels[0].vni if type(tunnels[0]) is VXLAN else tunnels[0].key) or 0)


def _inner(packet: Packet) -> Packet:
    return [layer for layer in packet.iterpayloads() if type(layer) in (IP, IPv6)][-1]


def _check_stack(packet: Packet, stream: Stream) -> None:
    """The outer headers, as the stream has them."""
    encap = stream["encap"]
    outer = [layer for layer in packet.iterpayloads() if type(layer) in (IP, IPv6)][:-1]
    labels = encap.get("labels", [])
    given = labels if isinstance(labels, list) else [labels]
    assert [(layer.src, layer.dst) for layer in outer] == (
        [(encap["src_ip"], encap["dst_ip"])] if "src_ip" in encap else []
    )
    assert [layer.label for layer in _layers(packet, MPLS)][:-1] == given[:-1]
    assert {layer.ttl for layer in _layers(packet, MPLS)} <= {encap.get("ttl", 64)}
    if encap["type"] in ("vxlan", "mpls-udp"):
        udp = _layers(packet, UDP)[0]
        assert bool(udp.chksum) == encap.get("checksum", True)
        assert udp.sport == encap["src_port"] if "src_port" in encap else udp.sport >= 49152
    assert len(_layers(packet, Ether)) == 1 + (encap["type"] in ("vxlan", "gretap"))


def _check_frames(stream: Stream, frames: Sequence[bytes]) -> None:
    flows = flows_of(stream, np.arange(FRAMES, dtype=np.uint64)).astype(np.uint64)
    wanted, ids = tuples(stream, flows), encap_ids(stream, flows)
    assert len(frames) == FRAMES
    for i, frame in enumerate(frames):
        packet = Ether(frame)
        inner = _inner(packet)
        assert _built_again(packet) == frame, packet.show(dump=True)
        assert len(frame) == stream["size"] - 4
        _check_stack(packet, stream)
        assert _id_of(packet) == ids[i]
        assert (inner.payload.sport, inner.payload.dport) == (wanted.src_port[i], wanted.dst_port[i])
        head = bytes(inner)[8:40] if type(inner) is IPv6 else bytes(inner)[12:20]
        assert head == bytes(wanted.src[i]) + bytes(wanted.dst[i])


def _complaints(path: Path) -> str:
    """Frames that tshark finds malformed, or whose checksums it finds wrong."""
    checks = [f"{layer}.check_checksum:TRUE" for layer in ("ip", "udp", "tcp")]
    bad = " || ".join(["_ws.malformed", *(f"{layer}.checksum.status == 0" for layer in ("ip", "udp", "tcp"))])
    options = [word for check in checks for word in ("-o", check)]
    done = subprocess.run(
        ["tshark", "-n", "-r", str(path), *options, "-Y", bad], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout


def _protocols(path: Path) -> set[str]:
    words = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", "frame.protocols"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    return {name for line in done.stdout.split() for name in line.split(":")}


def _by_stream(streams: Sequence[Stream], path: Path) -> Iterator[tuple[Stream, list[bytes]]]:
    """The frames of each stream, which has its own size."""
    frames = [frame for frame, _ in RawPcapReader(str(path))]
    for stream in streams:
        yield stream, [frame for frame in frames if len(frame) == stream["size"] - 4]


def _plain(packet: Packet) -> Packet:
    return Ether(src=packet.src, dst=packet.dst) / _inner(packet)


def _in_gre(packet: Packet) -> Packet:
    return (
        Ether(src=packet.src, dst=packet.dst)
        / IP(src="10.9.0.1", dst="10.9.0.2")
        / GRE(key_present=1, key=77)
        / _inner(packet)
    )


def _in_vxlan(packet: Packet) -> Packet:
    outer = IPv6(src="2001:db8:9::1", dst="2001:db8:9::2") / UDP(sport=50000, dport=8472) / VXLAN(flags=8, vni=4242)
    return (
        Ether(src=packet.src, dst=packet.dst)
        / outer
        / Ether(src="02:00:00:00:01:01", dst="02:00:00:00:01:02")
        / _inner(packet)
    )


def _in_labels(packet: Packet) -> Packet:
    labels = MPLS(label=500, s=0, ttl=9) / MPLS(label=501, s=1, ttl=9)
    outer = IP(src="10.9.0.1", dst="10.9.0.2") / UDP(sport=50001, dport=6635)
    return Ether(src=packet.src, dst=packet.dst) / outer / labels / _inner(packet)


# What becomes of a frame, what is then expected of it, and what is not there.
CHANGES = [
    (_plain, "none", {"type": "gre"}),
    (_in_gre, {"type": "gre", "key": 77, "src_ip": "10.9.0.1", "dst_ip": "10.9.0.2"}, {"type": "gre", "key": 78}),
    (_in_vxlan, {"type": "vxlan", "vni": 4242, "dst_ip": "2001:db8:9::2"}, {"type": "vxlan", "checksum": False}),
    (
        _in_labels,
        {"type": "mpls-udp", "labels": [500, 501], "checksum": True},
        {"type": "mpls-udp", "labels": [501, 501]},
    ),
]


def _only_received(stream: Stream, expect: Any) -> dict[str, Any]:
    own = {
        key: stream[key]
        for key in ("name", "id", "to", "protocol", "src_ip", "dst_ip", "encap", "vlan")
        if key in stream
    }
    return own | {"size": stream["size"], "expect": {"encap": expect}}


def _replayed(bench: Bench, streams: Sequence[Stream], frames: Sequence[Packet], expect: Any) -> Results:
    path = bench.dl3gen.folder / "changed.pcap"
    wrpcap(str(path), [Ether(bytes(frame)) for frame in frames])
    replay = {"name": "replay", "id": 255, "from": "left", "to": "right", "pcap": str(path), "rate": "max", "loops": 1}
    return bench.run(replay, *(_only_received(stream, expect) for stream in streams))


def _check_received(results: Results, wrong: bool) -> None:
    replay, *received = results.streams
    assert replay.unstamped == sum(each.received for each in received)
    for each in received:
        assert (each.received, each.lost, each.corrupted, each.duplicated, each.reordered) == (FRAMES, 0, 0, 0, 0)
        assert each.expect
        assert (each.expect.checked, each.expect.wrong_encap) == (FRAMES, FRAMES if wrong else 0), each
        assert each.expect.wrong == each.expect.wrong_encap


def frames_are_what_scapy_and_tshark_make_of_them_and_are_found_in_anything_else(tmp_path: Path) -> None:
    streams = _streams()
    total = FRAMES * len(streams)
    with Bench(tmp_path, [f"{THERE} dump={total}"]) as bench:
        results = bench.run(*streams)
        for stream, each in zip(streams, results.streams, strict=True):
            assert (each.sent, each.received, each.corrupted, each.flows) == (FRAMES, FRAMES, 0, n_flows(stream))
            assert each.received_bytes == FRAMES * stream["size"]
        assert results.ports[1].rx_packets == total
        assert _complaints(bench.dumped()) == ""
        assert {"mpls", "gre", "vxlan", "tcp", "udp"} <= _protocols(bench.dumped())
        packets: list[Packet] = []
        for stream, frames in _by_stream(streams, bench.dumped()):
            _check_frames(stream, frames)
            packets += [Ether(frame) for frame in frames]
        for change, expected, not_there in CHANGES:
            changed = [change(packet) for packet in packets]
            _check_received(_replayed(bench, streams, changed, expected), wrong=False)
            _check_received(_replayed(bench, streams, changed, not_there), wrong=True)


def _end(folder: Path, role: str) -> Generator:
    """A dl3gen with one end of a memif link."""
    device = f"net_memif0,role={role},id=0,rsize=12,socket={folder}/link,socket-abstract=no"
    whole = {
        "ports": [{"name": "link", "device": device}],
        "workers": [{"core": CORES[0] if role == "server" else CORES[-1]}],
        "memory": {"hugepages": "never"},
        "control": {"socket": "@SOCKET@"},
    }
    return Generator(DL3GEN, yaml.safe_dump(whole, sort_keys=False))


def _arrived(receiver: Generator) -> tuple[StreamResult, ...]:
    return receiver.results().streams


@pytest.mark.parametrize("names", [("udp", "vxlan"), ("mpls-deep", "gre-key")])
def two_generators_account_for_what_is_between_them(tmp_path: Path, names: tuple[str, str]) -> None:
    ends = {"from": "link", "to": "link", "rate": "20 kpps", "frames": 5000, "catch_up": 16384}
    sent = [flood(name=name, id=i, **ENCAPS[name]) | ends for i, name in enumerate(names)]
    kept = ("name", "id", "to", "protocol", "src_ip", "dst_ip", "encap", "vlan")
    expected = [{key: each[key] for key in kept if key in each} for each in sent]
    for each in expected:
        encap = {
            key: value
            for key, value in each["encap"].items()
            if key in ("type", "labels", "vni", "key", "src_ip", "dst_ip")
        }
        each["expect"] = {"encap": encap}
    with ExitStack() as stack:
        sender = stack.enter_context(_end(tmp_path, "server"))
        sender.wait_ready()
        receiver = stack.enter_context(_end(tmp_path, "client"))
        receiver.wait_ready()
        wait_until(lambda: all(end.ports().ports[0].link_up for end in (sender, receiver)), "the link was up")
        receiver.send(streams=expected, seconds=86400)
        sender.send(streams=sent)
        out = sender.finish(0.0, PATIENCE_S).streams
        total = sum(each.sent - each.refused for each in out)
        wait_until(
            lambda: sum(each.received for each in _arrived(receiver)) == total, "all frames had arrived", PATIENCE_S
        )
        for there, here in zip(out, _arrived(receiver), strict=True):
            assert here.received == there.sent - there.refused
            assert (here.corrupted, here.duplicated, here.reordered, here.too_old) == (0, 0, 0, 0)
            assert here.expect
            assert (here.expect.checked, here.expect.wrong) == (here.received, 0)
        port = receiver.results().ports[0]
        assert (port.rx_packets, port.foreign, port.misdirected) == (total, 0, 0)
        receiver.stop()
