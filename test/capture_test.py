"""'dl3 capture' on a running dl3d: frames with their bytes, drops with their reasons, and what goes wrong."""

import resource
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.captures import Captured, RunningCapture, dl3, is_capturing, read_by_tshark, started, wait_for_none
from harness.frames import ICMP, IP, forwarded, ip4, ip6, on
from harness.wire import wait_until
from harness.wired import TOP, WiredForwarder
from verdicts_test import NEIGHBOURS, PORTS, ROUTES, ROWS, Row

TEXTS = {row["name"]: row["text"] for row in tomllib.loads((TOP / "schema" / "verdicts.toml").read_text())["verdict"]}
LOST = on(0, ip4("192.0.2.1", payload=1400))  # no route
PASSING = on(0, ip4("10.2.0.1"))


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredForwarder]:
    with WiredForwarder(PORTS, routes=ROUTES, neighbours=NEIGHBOURS) as made:
        made.namespace.ip("link", "set", "dev", "e", "mtu", "1000")
        yield made


def _written(wired: WiredForwarder, frame: bytes, index: int) -> bytes:
    """The frame as it would leave on that port, whose device may have a MAC address of its own."""
    mac = bytes.fromhex(wired.dl3d.call("ports")["ports"][index]["mac"].replace(":", ""))
    left = forwarded(frame, index)
    return left[:6] + mac + left[12:]


def _wanted(wired: WiredForwarder, row: Row) -> list[Captured]:
    """What is captured of a row's frame."""
    # Linux takes a tag out of the frame, and net_af_packet puts back one of 802.1Q.
    is_tagged = row.frame[12:14] == b"\x88\xa8"
    seen = row.frame[:12] + b"\x81\x00" + row.frame[14:] if is_tagged else row.frame
    came = Captured("a", "", "in", seen, len(seen))
    if row.out is not None:
        frame = row.leaves(row.out)
        return [came, Captured(PORTS[row.out].name, "", "out", frame, len(frame))]
    # These are told after the frame has been written to.
    sent_to = {"port_down": 3, "tx_refused": 4}.get(row.verdict)
    frame = seen if sent_to is None else _written(wired, row.frame, sent_to)
    comment = f"dropped: {TEXTS[row.verdict]} (port a)"
    return [came, Captured(f"drop:{row.verdict}", comment, "in", frame, len(frame))]


def a_capture_has_each_frame_and_the_reason_of_each_drop(wired: WiredForwarder, tmp_path: Path) -> None:
    with RunningCapture(wired.dl3d.socket, tmp_path / "all.pcapng") as capture:
        for row in ROWS:
            wired.send_all([row.frame])
        summary = capture.end()
    wanted = [packet for row in ROWS for packet in _wanted(wired, row)]
    assert (summary["captured"], summary["missed"]) == (len(wanted), 0)
    assert list(capture.packets()) == wanted
    for wire in wired.wires.values():
        wire.drain()


def one_reason_one_port_and_a_filter_are_captured_alone(wired: WiredForwarder, tmp_path: Path) -> None:
    ping, other = on(0, IP(src="10.0.1.2", dst="192.0.2.1") / ICMP()), on(0, ip6("2001:db8:ffff::1"))
    frames, socket = [PASSING, LOST, ping, other], wired.dl3d.socket
    rows: list[tuple[list[str], list[tuple[str, bytes]]]] = [
        (["--verdict", "no_route"], [("drop:no_route", frame) for frame in (LOST, ping, other)]),
        (["--verdict", "no_route", "icmp"], [("drop:no_route", ping)]),
        (["--drops", "-i", "b"], []),
        (["-i", "b"], [("b", forwarded(PASSING, 1))]),
        (["ip6", "or", "icmp"], [("a", ping), ("drop:no_route", ping), ("a", other), ("drop:no_route", other)]),
    ]
    for number, (words, wanted) in enumerate(rows):
        with RunningCapture(socket, tmp_path / f"{number}.pcapng", *words) as capture:
            for frame in frames:
                wired.send_all([frame])
            assert capture.end()["captured"] == len(wanted), words
        assert [(packet.interface, packet.frame) for packet in capture.packets()] == wanted


def a_capture_ends_after_so_many_packets_and_cuts_them(wired: WiredForwarder, tmp_path: Path) -> None:
    with RunningCapture(wired.dl3d.socket, tmp_path / "c.pcapng", "-c", "3", "-s", "64", "--drops") as capture:
        wired.send_all([LOST] * 9)
        assert capture.wait()["captured"] == 3
    assert [(packet.frame, packet.length) for packet in capture.packets()] == [(LOST[:64], len(LOST))] * 3


def captured_and_missed_packets_are_all_that_dropped(wired: WiredForwarder, tmp_path: Path) -> None:
    """A reader that stands still: the ring fills, and forwarding goes on."""
    before = wired.account()
    words = ("--verdict", "no_route", "--buffer", "256")
    with RunningCapture(wired.dl3d.socket, tmp_path / "full.pcapng", *words) as capture:
        capture.process.send_signal(signal.SIGSTOP)
        wired.send_all([LOST, PASSING] * 2500)
        capture.process.send_signal(signal.SIGCONT)
        summary = capture.end()
    account = wired.account().since(before)
    assert summary["missed"] > 0
    assert summary["captured"] + summary["missed"] == account.drops["no_route"] == 2500
    assert account.sent == 2500
    assert len(capture.packets()) == summary["captured"]
    wired.wires["b"].drain()


def lines_are_printed_without_a_file(wired: WiredForwarder) -> None:
    words = ["capture", "--socket", str(wired.dl3d.socket), "--drops", "-c", "1"]
    with started(*words) as process:
        while process.poll() is None:  # nothing says when it captures
            wired.send_all([LOST])
        printed, told = process.communicate()
    wait_for_none(wired.dl3d.socket)
    assert (process.returncode, told) == (0, "dl3: captured 1 packet, missed 0\n")
    assert printed.endswith(
        " drop:no_route, 1,442 bytes: 10.0.1.2:1024 > 192.0.2.1:53 udp; dropped: no route to the destination (port a)\n"
    )


def only_one_capture_runs_at_a_time(wired: WiredForwarder, tmp_path: Path) -> None:
    with RunningCapture(wired.dl3d.socket, tmp_path / "first.pcapng") as capture:
        second = dl3("capture", "--socket", wired.dl3d.socket, "-w", tmp_path / "second.pcapng")
        assert (second.returncode, "another capture is running" in second.stderr) == (2, True), second.stderr
        assert not (tmp_path / "second.pcapng").exists()
        capture.end()
    with RunningCapture(wired.dl3d.socket, tmp_path / "third.pcapng") as third:
        assert third.end()["captured"] == 0


def a_capture_ends_when_its_command_is_killed(wired: WiredForwarder, tmp_path: Path) -> None:
    with RunningCapture(wired.dl3d.socket, tmp_path / "first.pcapng") as first:
        assert is_capturing(wired.dl3d.socket)
        first.process.kill()
        wait_for_none(wired.dl3d.socket)
    with RunningCapture(wired.dl3d.socket, tmp_path / "second.pcapng") as second:
        assert second.end()["captured"] == 0


def a_full_disk_ends_a_capture_with_what_it_has(wired: WiredForwarder, tmp_path: Path) -> None:
    """A limit of the size of files stands for the disk."""
    file = tmp_path / "cut.pcapng"
    with RunningCapture(wired.dl3d.socket, file) as capture:
        resource.prlimit(capture.process.pid, resource.RLIMIT_FSIZE, (100_000, 100_000))
        wired.send_all([LOST] * 200)
        printed, told = capture.process.communicate(timeout=120)
    assert capture.process.returncode == 1
    packets = read_by_tshark(file)
    assert len(packets) > 0
    assert (
        f"cannot write {file} any further: File too large; the {len(packets)} packets captured before are kept" in told
    )
    assert f'"captured": {len(packets)}' in printed


def what_standard_output_had_before_is_kept(wired: WiredForwarder, tmp_path: Path) -> None:
    """The shell's file is not cut when it can take no more."""
    file = tmp_path / "mine"
    file.write_bytes(b"mine" * 1000)
    words = [sys.executable, "-m", "dl3", "capture", "--socket", str(wired.dl3d.socket), "--drops", "-w", "-"]
    with file.open("ab") as out, subprocess.Popen(words, stdout=out, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: file.stat().st_size > 4000 or process.poll() is not None, "the capture ran")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20_000, 20_000))
        wired.send_all([LOST] * 200)
        _, told = process.communicate(timeout=120)
    wait_for_none(wired.dl3d.socket)
    assert (process.returncode, "cannot write standard output any further" in told) == (1, True), told
    assert file.stat().st_size == 20_000
    assert file.read_bytes().startswith(b"mine" * 1000)


BAD = [
    (["--verdict", "no_rout"], "there is no drop reason 'no_rout'"),
    (["--drops", "--verdict", "no_route"], "--drops captures all reasons"),
    (["-i", "west"], "there is no port 'west': 'dl3 show ports' lists them"),
    (["udp", "and", "prt", "53"], "invalid filter at 'and prt 53', after 'udp': "),
    (["-s", "3"], "greater than or equal to 14"),
    (["-c", "0"], "greater than or equal to 1"),
    (["--json"], "write the packets to a file with -w FILE"),
    (["-w", "@HERE@"], "exists: choose another name, or replace it with --force"),
    (["-w", "/nowhere/x"], "cannot write /nowhere/x: No such file or directory"),
]


def a_file_is_for_its_owner_alone_and_no_link_is_followed(wired: WiredForwarder, tmp_path: Path) -> None:
    """Frames may be secret, and whoever made the link may want the other file to be lost."""
    mine, link = tmp_path / "mine", tmp_path / "link"
    mine.write_text("mine")
    link.symlink_to(mine)
    done = dl3("capture", "--socket", wired.dl3d.socket, "--force", "-w", link)
    assert (done.returncode, "is a symbolic link" in done.stderr) == (1, True), done.stderr
    assert mine.read_text() == "mine"
    wait_for_none(wired.dl3d.socket)
    with RunningCapture(wired.dl3d.socket, tmp_path / "new.pcapng") as capture:
        assert (tmp_path / "new.pcapng").stat().st_mode & 0o777 == 0o600
        capture.end()


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def bad_input_gets_one_sentence(wired: WiredForwarder, tmp_path: Path, words: list[str], sentence: str) -> None:
    (tmp_path / "here").write_text("mine")
    given = [str(tmp_path / "here") if word == "@HERE@" else word for word in words]
    done = dl3("capture", "--socket", wired.dl3d.socket, *given)
    assert done.returncode == (1 if "nowhere" in sentence else 2)
    assert sentence in " ".join(done.stderr.split())
    assert (tmp_path / "here").read_text() == "mine"


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ([[5, 0, 0, 2**32 - 1], [6, 0, 0, 1]], "not a valid BPF program"),
        ([[0, 0, 0]], "instruction 0 of the filter"),
        ([[6, 0, 0, -1]], "instruction 0 of the filter"),
        ([], "program"),
    ],
)
def dl3d_refuses_programs_that_are_none(wired: WiredForwarder, program: list[list[int]], sentence: str) -> None:
    words = f'{{"program": {program}}}'
    done = dl3("call", "capture.start", words, "--socket", wired.dl3d.socket)
    assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr
