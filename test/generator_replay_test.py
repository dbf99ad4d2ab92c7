"""Capture files replayed by dl3gen: each byte, each time, and the part that can be accounted for."""

import time
from pathlib import Path
from typing import Any

import pytest
from harness.answers import BACK, PATIENCE_S, THERE, Bench, port
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import rdpcap, wrpcap, wrpcapng

from dl3.control.generator import StreamResult
from dl3.model.fault import Fault

FRAMES = [
    Ether(dst="02:00:00:00:00:77", src="02:00:00:00:00:66") / layers
    for layers in (
        IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2) / Raw(bytes(range(18))),
        ARP(pdst="10.0.0.2"),
        IP(src="10.0.0.1", dst="10.0.0.2") / TCP(flags="A"),
        IP(src="10.0.0.1", dst="10.0.0.2") / TCP(flags="PA", seq=7) / Raw(b"x" * 700),
        Dot1Q(vlan=5) / IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP() / Raw(b"y" * 900),
        IP(src="10.0.0.1", dst="10.0.0.2") / UDP() / Raw(b"short"),
    )
]
STAMPED = 3
CORPUS = Path(__file__).parent / "corpus" / "capture"
LOOPS = 20


def _capture(folder: Path, gap_s: float = 0.002) -> str:
    path = folder / "in.pcap"
    for i, frame in enumerate(FRAMES):
        frame.time = 1_700_000_000 + i * gap_s
    wrpcap(str(path), FRAMES)
    return str(path)


def _stream(pcap: str, **keys: Any) -> dict[str, Any]:
    return {"from": "left", "to": "right", "pcap": pcap, "rate": "max", "loops": 1} | keys


def _padded(frames: list[Any]) -> list[bytes]:
    return [bytes(frame).ljust(60, b"\0") for frame in frames]


def _sent(folder: Path, n: int, stream: dict[str, Any]) -> tuple[list[bytes], StreamResult]:
    with Bench(folder, [f"{THERE} dump={n}"]) as bench:
        reported, _ = bench.run_one(stream)
        return [bytes(frame) for frame in rdpcap(str(bench.dumped()))], reported


def frames_are_sent_as_they_are_loop_after_loop(tmp_path: Path) -> None:
    out, reported = _sent(tmp_path, 5 * len(FRAMES), _stream(_capture(tmp_path), loops=5))
    assert out == _padded(FRAMES) * 5
    assert (reported.sent, reported.received, reported.lost, reported.unstamped) == (0, 0, 0, 5 * len(FRAMES))
    assert reported.sent_bytes == 5 * sum(len(frame) + 4 for frame in _padded(FRAMES))


def a_pcapng_file_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "in.pcapng"
    wrpcapng(str(path), FRAMES)
    out, _ = _sent(tmp_path, len(FRAMES), _stream(str(path)))
    assert out == _padded(FRAMES)


def a_pcapng_file_is_replayed_without_what_is_not_ethernet(tmp_path: Path) -> None:
    """The file has 1 frame of Ethernet and 1 of Linux cooked capture; fuzz targets take the first byte as options."""
    path = tmp_path / "in.pcapng"
    path.write_bytes((CORPUS / "mixed_links").read_bytes()[1:])
    with Bench(tmp_path, [f"{THERE} dump=2"]) as bench:
        (reply,) = bench.dl3gen.call("send", streams=[_stream(str(path), loops=2)])["streams"]
        bench.dl3gen.finish()
        out = [bytes(frame) for frame in rdpcap(str(bench.dumped()))]
    assert [len(frame) for frame in out] == [82, 82]
    assert (reply["pcap"]["frames"], reply["pcap"]["left_out"]) == (1, 1)
    assert reply["pcap"]["left_out_of"] == "interface 1 (LINUX_SLL, 1 frame)"


def a_captured_fcs_is_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "in.pcap"
    wrpcap(str(path), [Raw(frame + b"fcs!") for frame in _padded(FRAMES)], linktype=0x24000001)
    out, _ = _sent(tmp_path, len(FRAMES), _stream(str(path)))
    assert out == _padded(FRAMES)


def mac_addresses_are_rewritten_where_they_are_given(tmp_path: Path) -> None:
    macs = {"dst_mac": "02:00:00:00:00:99", "src_mac": "02:00:00:00:00:88"}
    out, _ = _sent(tmp_path, len(FRAMES), _stream(_capture(tmp_path), **macs))
    head = bytes.fromhex("020000000099020000000088")
    assert out == [head + frame[12:] for frame in _padded(FRAMES)]


def stamped_frames_are_accounted_for_and_the_others_are_foreign(tmp_path: Path) -> None:
    loops = 200
    with Bench(tmp_path, [f"{THERE} drop_every=5"]) as bench:
        results = bench.run(_stream(_capture(tmp_path), stamp=True, loops=loops))
        (reported,), (truth,) = results.streams, bench.truths()
        foreign = sum(each.foreign for each in results.ports)
    assert (reported.sent, reported.unstamped) == (STAMPED * loops, (len(FRAMES) - STAMPED) * loops)
    assert (truth.offered, truth.dropped) == (len(FRAMES) * loops, len(FRAMES) * loops // 5)
    assert reported.received + foreign == truth.taken
    assert (reported.corrupted, reported.reordered, reported.duplicated) == (0, 0, 0)
    assert reported.reordered_per == "stream"  # whatever their flows
    assert reported.lost == reported.lost_by_gaps == STAMPED * loops - reported.received > 0


def the_reply_to_send_reports_how_many_frames_are_stamped(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        (reported,) = bench.dl3gen.call("send", streams=[_stream(_capture(tmp_path), stamp=True)])["streams"]
        bench.dl3gen.finish()
    assert reported["pcap"]["frames"] == len(FRAMES)
    assert reported["pcap"]["stamped"] == STAMPED
    assert reported["pcap"]["seconds"] == pytest.approx(0.012)


def _punctual(folder: Path, stream: dict[str, Any]) -> StreamResult:
    """A run without long pauses of its core; runs with pauses are repeated."""
    with Bench(folder, [THERE], measures=True) as bench:
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            reported, _ = bench.run_one(stream)
            if reported.longest_lag_us < 1000:
                return reported
    raise AssertionError("the core was taken away in each run")


@pytest.mark.timing
@pytest.mark.parametrize(("rate", "seconds"), [("as recorded", 0.012), ("x2.0", 0.006), ("1 kpps", 0.006)])
def frames_are_due_as_recorded_or_faster_or_at_a_rate(tmp_path: Path, rate: str, seconds: float) -> None:
    reported = _punctual(tmp_path, _stream(_capture(tmp_path), rate=rate, loops=LOOPS, catch_up=16384))
    assert reported.asked_pps == pytest.approx(len(FRAMES) / seconds, rel=1e-6)
    assert reported.unstamped == len(FRAMES) * LOOPS
    assert reported.offered_pps == pytest.approx(reported.asked_pps, rel=0.05)


def what_comes_later_than_may_be_caught_up_with_is_left_out_and_late(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} limit_pps=50000 refuses=1"]) as bench:
        reported, truth = bench.run_one(_stream(_capture(tmp_path, 1e-6), rate="x10", loops=2000))
    assert reported.unstamped + reported.late == 2000 * len(FRAMES)
    assert reported.late > 0
    assert truth.offered - truth.refused == reported.unstamped


def what_a_full_ring_refuses_of_stamped_frames_is_lost_there(tmp_path: Path) -> None:
    loops = 300
    with Bench(tmp_path, [f"{THERE} limit_pps=50000 refuses=1"]) as bench:
        reported, truth = bench.run_one(
            _stream(_capture(tmp_path), stamp=True, rate="500 kpps", loops=loops, catch_up=16384)
        )
    assert reported.sent + reported.unstamped + reported.late == loops * len(FRAMES)
    assert 0 < reported.refused <= truth.refused
    assert reported.lost == reported.refused
    assert reported.received == reported.sent - reported.refused


def a_stream_and_a_capture_run_side_by_side(tmp_path: Path) -> None:
    plain = {"from": "right", "to": "left", "dst_mac": "02:00:00:00:00:99", "rate": "max", "frames": 500}
    with Bench(tmp_path, [THERE, BACK]) as bench:
        replayed, sent = bench.run(_stream(_capture(tmp_path), stamp=True, loops=50), plain).streams
    assert (replayed.received, replayed.lost) == (STAMPED * 50, 0)
    assert (sent.received, sent.lost) == (500, 0)


def a_frame_beyond_the_mtu_and_a_capture_without_room_are_refused(tmp_path: Path) -> None:
    pcap = _capture(tmp_path)
    with (
        Bench(tmp_path, ports=[port(0, mtu=600), port(1)]) as bench,
        pytest.raises(Fault, match=r"pcap: port left accepts"),
    ):
        bench.dl3gen.send(streams=[_stream(pcap)])
    wrpcap(pcap, [FRAMES[1]])
    with Bench(tmp_path) as bench:
        with pytest.raises(Fault, match="none of its frames has room for a stamp"):
            bench.dl3gen.send(streams=[_stream(pcap, stamp=True)])
        with pytest.raises(Fault, match="have the same time"):
            bench.dl3gen.send(streams=[_stream(pcap, rate="as recorded")])
