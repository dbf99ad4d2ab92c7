"""Devices without cables: capture files, memif between two forwarders, multi-segment frames."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.fragments import fragments
from harness.frames import Ether, Packet, forwarded, ip4, ip6, on
from harness.wire import wait_until
from harness.wired import DL3D, Port, WiredForwarder, config_text, host_mac, port_mac, walked
from scapy.utils import rdpcap, wrpcap

from dl3.lab.forwarder import Forwarder

PCAP_MAC = "02:70:63:61:70:00"  # assigned by DPDK to the first capture-file device
VIA_B = {
    "routes": ["10.2.0.0/16 via 10.0.2.2 dev b", "2001:db8:22::/48 via 2001:db8:2::2 dev b"],
    "neighbours": [f"{address} lladdr {host_mac(1)} dev b" for address in ("10.0.2.2", "2001:db8:2::2")],
    "memory": {"hugepages": "never"},
}


def _files(folder: Path, frames: list[bytes]) -> list[Port]:
    """Port a reads `frames` from a file; frames that leave on b are written to another file."""
    wrpcap(str(folder / "in.pcap"), [Ether(frame) for frame in frames])
    wrpcap(str(folder / "none.pcap"), [], linktype=1)
    to_file = f"net_pcap1,rx_pcap={folder}/none.pcap,tx_pcap={folder}/out.pcap"
    return [
        Port("a", device=f"net_pcap0,rx_pcap={folder}/in.pcap,tx_pcap={folder}/back.pcap"),
        Port("b", device=to_file),
    ]


def capture_files_are_walked_from_end_to_end(tmp_path: Path) -> None:
    packets = [ip4(f"10.2.{i}.1", payload=i, ttl=1 + i % 3) for i in range(100)]
    packets += [ip6(f"2001:db8:22::{i:x}", payload=i, hlim=1 + i % 3) for i in range(100)]
    # The kernel reassembles fragments before net_af_packet sees them, so they are tested here.
    packets += [ip4("10.2.0.1", id=7, flags="MF", ttl=9), ip4("10.2.0.1", id=7, frag=5, ttl=9)]
    frames = [on(0, packet, dst=PCAP_MAC) for packet in packets]
    account = walked(config_text(_files(tmp_path, frames), **VIA_B), len(frames))
    n_expired = sum(1 for i in range(100) if i % 3 == 0) * 2
    assert account.drops == {"ttl_expired": n_expired}
    assert account.sent == len(frames) - n_expired
    out = _written(tmp_path)
    wanted = [forwarded(frame, 1) for i, frame in enumerate(frames) if i >= 200 or i % 100 % 3]
    assert sorted(frame[:6] + frame[12:] for frame in out) == sorted(frame[:6] + frame[12:] for frame in wanted)


def frames_in_several_buffers_are_refused_by_a_device_that_cannot_take_them(tmp_path: Path) -> None:
    frames = [on(0, ip4("10.2.0.1", payload=size)) for size in (18, 4000, 1400, 8000)]
    ports = _files(tmp_path, frames)
    tied = {"mode": "xconnect"}
    ports = [replace(port, keys=tied | {"to": other}) for port, other in zip(ports, "ba", strict=True)]
    account = walked(config_text(ports), len(frames))
    assert account.drops == {"multi_segment": 2}
    assert _written(tmp_path) == [frames[0], frames[2]]


def frames_in_several_buffers_are_routed_or_too_long(tmp_path: Path) -> None:
    frames = [on(0, ip4("10.2.0.1", payload=size, flags="DF"), dst=PCAP_MAC) for size in (18, 4000, 1400, 8000)]
    assert walked(config_text(_files(tmp_path, frames), **VIA_B), len(frames)).drops == {"mtu_exceeded": 2}
    assert [len(frame) for frame in _written(tmp_path)] == [len(frames[0]), len(frames[2])]


def frames_in_several_buffers_are_fragmented(tmp_path: Path) -> None:
    frames = [on(0, ip4("10.2.0.1", payload=size), dst=PCAP_MAC) for size in (18, 4000, 1400, 8000)]
    account = walked(config_text(_files(tmp_path, frames), **VIA_B), len(frames))
    expected = [piece for frame in frames for piece in fragments(forwarded(frame, 1)[14:], 1500)]
    assert [frame[14 : 14 + int.from_bytes(frame[16:18], "big")] for frame in _written(tmp_path)] == expected
    assert (account.drops, account.copied) == ({}, len(expected) - len(frames))


def trailers_in_several_buffers_stay_behind(tmp_path: Path) -> None:
    packets = [make(size) for size in (18, 1400) for make in (_to_b4, _to_b6)]
    frames = [on(0, packet, dst=PCAP_MAC) for packet in packets for _ in range(4)]
    walked_in = [frame + bytes(n) for frame, n in zip(frames, (1500, 2100, 4000, 7000) * len(packets), strict=True)]
    assert walked(config_text(_files(tmp_path, walked_in), **VIA_B), len(frames)).drops == {}
    out = [frame[12:] for frame in _written(tmp_path)]  # one address family after the other
    assert sorted(out) == sorted(forwarded(frame, 1)[12:] for frame in frames)


def _to_b4(size: int) -> Packet:
    return ip4("10.2.0.1", payload=size)


def _to_b6(size: int) -> Packet:
    return ip6("2001:db8:22::1", payload=size)


def _written(folder: Path) -> list[bytes]:
    return [bytes(packet) for packet in rdpcap(str(folder / "out.pcap"))]


@pytest.fixture
def in_a_row(tmp_path: Path) -> Iterator[tuple[WiredForwarder, WiredForwarder]]:
    """Two forwarders: a, memif, b."""
    first = [Port("a"), _memif(tmp_path, "server", "02:00:00:00:0a:01")]
    second = [_memif(tmp_path, "client", "02:00:00:00:0a:02"), Port("b")]
    to_m = {"routes": ["10.2.0.0/16 via 10.0.9.2 dev m"], "neighbours": ["10.0.9.2 lladdr 02:00:00:00:0a:02 dev m"]}
    to_b = {"routes": ["10.2.0.0/16 via 10.0.2.2 dev b"], "neighbours": [f"10.0.2.2 lladdr {host_mac(1)} dev b"]}
    with WiredForwarder(first, **to_m) as left, WiredForwarder(second, **to_b) as right:
        # A ring accepts frames once the peer has polled it for the first time.
        wait_until(lambda: _passes_on(left, right), "memif was connected")
        wait_until(lambda: _is_level(left, right), "all that was sent till then had passed")
        right.wires["b"].drain()
        yield left, right
        left.dl3d.stop()


def _memif(folder: Path, role: str, mac: str) -> Port:
    device = f"net_memif{{index}},role={role},socket={folder}/memif.sock,socket-abstract=no,id=0"
    return Port("m", device=device, keys={"mac": mac})


def _passes_on(left: WiredForwarder, right: WiredForwarder) -> bool:
    left.wires["a"].send(on(0, ip4("10.2.0.1")))
    time.sleep(0.05)
    return right.account().sent > 0


def _is_level(left: WiredForwarder, right: WiredForwarder) -> bool:
    """No packets are in flight between the two."""
    here, there = left.account(), right.account()
    return here.is_closed and there.is_closed and there.received == here.sent


def two_forwarders_in_a_row_pass_a_packet_on(in_a_row: tuple[WiredForwarder, WiredForwarder]) -> None:
    left, right = in_a_row
    frame = on(0, ip4("10.2.0.1"))
    before = right.account().sent
    left.wires["a"].send(frame)
    wait_until(lambda: right.account().sent == before + 1, "the packet left on b")
    assert right.wires["b"].receive(60.0) == forwarded(forwarded(frame, 0), 1)


def a_peer_that_does_not_read_makes_the_device_refuse(in_a_row: tuple[WiredForwarder, WiredForwarder]) -> None:
    left, right = in_a_row
    frame = on(0, ip4("10.2.0.1"))
    before, n_sent = left.account(), 0
    os.kill(right.dl3d.process.pid, signal.SIGSTOP)
    try:
        while not left.account().since(before).drops and n_sent < 40_000:
            for _ in range(200):
                left.wires["a"].send(frame)
            n_sent += 200
            left.settle(before.received + n_sent)
    finally:
        os.kill(right.dl3d.process.pid, signal.SIGCONT)
    account = left.account().since(before)
    assert set(account.drops) == {"tx_refused"}
    assert account.sent + account.drops["tx_refused"] == n_sent
    right.settle(left.account().sent)
    came: list[bytes] = []

    def are_all_out() -> bool:
        came.extend(right.wires["b"].drain())
        return len(came) >= account.sent

    wait_until(are_all_out, "all had come out")
    assert len(came) == account.sent


def losses_that_a_device_does_not_count_are_unknown_not_0() -> None:
    slots, sent = 512, 700
    ports = [Port("a", device="net_af_packet{index},iface={name},framecnt=512"), Port("b", device="net_null1,no-rx=1")]
    with WiredForwarder(ports) as wired:
        threads = list(Path(f"/proc/{wired.dl3d.process.pid}/task").glob("*/stat"))
        os.kill(wired.dl3d.process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: all(") T " in thread.read_text() for thread in threads), "no thread of dl3d ran")
            for _ in range(sent):
                wired.wires["a"].send(on(0, ip4("10.2.0.1")))
        finally:
            os.kill(wired.dl3d.process.pid, signal.SIGCONT)
        assert wired.settle(slots).received == slots  # net_af_packet of DPDK 25.03 and later counts the others
        packet, null = wired.dl3d.call("ports")["ports"]
        assert packet["rx_missed"] in (None, sent - slots)
        assert packet["rx_errors"] is None
        assert (packet["tx_errors"], null["rx_missed"], null["rx_errors"]) == (0, 0, 0)
        assert wired.dl3d.call("drops")["wire"]["rx_missed"] == packet["rx_missed"]


def a_mac_of_the_file_is_the_ports_mac() -> None:
    with WiredForwarder([Port("a", keys={"mac": "02:00:00:00:0c:0c"}), Port("b")], **VIA_B) as wired:
        frame = on(0, ip4("10.2.0.1"), dst="02:00:00:00:0c:0c")
        wired.wires["a"].send(frame)
        assert wired.settle(1).sent == 1
        assert wired.wires["b"].receive(60.0) == forwarded(frame, 1)
        assert port_mac(0) not in str(wired.dl3d.call("ports"))


def an_interface_that_merges_frames_is_reported() -> None:
    lo = Port("a", device="net_af_packet0,iface=lo")  # Linux creates it with gro on
    with Forwarder(DL3D, config_text([lo], memory={"hugepages": "never"})) as dl3d:
        dl3d.wait_ready()
        (line,) = [line for line in dl3d.stderr.splitlines() if "ethtool" in line]
    assert "ports[0] (a)" in line
    assert "ethtool -K lo gro off lro off" in line
    with WiredForwarder([Port("a")], memory={"hugepages": "never"}) as wired:  # gro is off on these
        assert "ethtool" not in wired.dl3d.stderr


def many_queues_fit_into_the_memory_that_it_chooses() -> None:
    ports = [Port(f"p{index}", device="net_null{index},no-rx=1", keys={"queues": 2}) for index in range(6)]
    workers = [{"core": core} for core in sorted(os.sched_getaffinity(0))[:2]]
    with Forwarder(DL3D, config_text(ports, workers=workers, memory={"hugepages": "never"})) as dl3d:
        dl3d.wait_ready()
        assert len(dl3d.call("ports")["ports"]) == 6
