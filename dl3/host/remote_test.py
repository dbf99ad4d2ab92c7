"""Remote sessions by what processes hold: in a /proc that the test makes, and in the real one."""

import os
import socket
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

from dl3.host.remote import RemoteSession, remote_sessions
from dl3.host.sockets import hex_of

HERE, THERE = "net:[1]", "net:[2]"
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def _row(local: str, remote: str, inode: int, state: str = "01") -> str:
    ends = " ".join(f"{hex_of(ip_address(one))}:08AE" for one in (local, remote))
    return f"   0: {ends} {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0\n"


class _Proc:
    """A made-up /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process("self", 1, "dl3", parent=40)

    def process(
        self, name: str, number: int, comm: str, fds: tuple[str, ...] = (), namespace: str = HERE, parent: int = 0
    ) -> Path:
        """A process; `name` is its folder."""
        at = self.folder / name
        (at / "fd").mkdir(parents=True)
        (at / "ns").mkdir()
        (at / "net").mkdir()
        (at / "ns" / "net").symlink_to(namespace)
        (at / "comm").write_text(f"{comm}\n")
        (at / "stat").write_text(f"{number} ({comm}) S {parent} 1 1\n")
        (at / "environ").write_text("HOME=/\0")
        for n, one in enumerate(fds):
            (at / "fd" / str(n)).symlink_to(one)
        return at


def _tcp(process: Path, text4: str, text6: str = "") -> None:
    (process / "net" / "tcp").write_text(HEAD + text4)
    (process / "net" / "tcp6").write_text(HEAD + text6)


def sshd_is_found_on_any_port_and_in_both_families(tmp_path: Path) -> None:
    proc = _Proc(tmp_path)
    rows4 = (
        _row("192.0.2.1", "192.0.2.7", 11)
        + _row("192.0.2.1", "192.0.2.9", 12)
        + _row("192.0.2.1", "192.0.2.10", 13, "06")
    )
    rows6 = _row("2001:db8::1", "2001:db8::7", 14) + _row("::ffff:192.0.2.1", "::ffff:192.0.2.8", 15)
    _tcp(proc.process("50", 50, "sshd", ("socket:[11]", "socket:[13]", "/dev/null", "pipe:[14]")), rows4, rows6)
    _tcp(proc.process("51", 51, "sshd-session", ("socket:[14]",)), rows4, rows6)
    _tcp(proc.process("52", 52, "dropbear", ("socket:[15]",)), rows4, rows6)
    _tcp(proc.process("53", 53, "curl", ("socket:[12]",)), rows4, rows6)
    assert [(one.peer, one.local) for one in remote_sessions(tmp_path)] == [
        ("192.0.2.7", "192.0.2.1"),
        ("2001:db8::7", "2001:db8::1"),
        ("192.0.2.8", "192.0.2.1"),
    ]


def a_program_with_a_terminal_and_a_connection_is_a_session_and_one_without_is_not(tmp_path: Path) -> None:
    proc = _Proc(tmp_path)
    rows = _row("192.0.2.1", "192.0.2.7", 11) + _row("192.0.2.1", "192.0.2.9", 12)
    _tcp(proc.process("50", 50, "ttyd", ("/dev/ptmx", "socket:[11]")), rows)
    _tcp(proc.process("51", 51, "nginx", ("socket:[12]",)), rows)
    _tcp(proc.process("52", 52, "tmux: server", ("/dev/ptmx",)), rows)
    assert remote_sessions(tmp_path) == (RemoteSession(what="'ttyd'", peer="192.0.2.7", local="192.0.2.1"),)


def a_session_of_another_namespace_says_so(tmp_path: Path) -> None:
    proc = _Proc(tmp_path)
    _tcp(proc.process("50", 50, "sshd", ("socket:[11]",), THERE), _row("192.0.2.1", "192.0.2.7", 11))
    assert [one.is_here for one in remote_sessions(tmp_path)] == [False]


def the_environment_of_a_parent_counts_as_sudo_removes_it(tmp_path: Path) -> None:
    proc = _Proc(tmp_path)
    proc.process("40", 40, "sudo (root)", parent=39)
    shell = proc.process("39", 39, "bash", parent=0)
    (shell / "environ").write_text("A=1\0SSH_CONNECTION=fe80::7%eth0 5000 fe80::1%eth0 2222\0")
    assert remote_sessions(tmp_path) == (RemoteSession(what="ssh", peer="fe80::7%eth0", local="fe80::1%eth0"),)


def processes_that_end_meanwhile_are_left_out(tmp_path: Path) -> None:
    _Proc(tmp_path)
    (tmp_path / "60").mkdir()
    assert remote_sessions(tmp_path) == ()


def finds_a_real_process_with_a_terminal_and_a_connection_on_a_free_port() -> None:
    """The real /proc: this process connects to a child that holds a terminal, as sshd does."""
    program = (
        "import os, pty, socket, sys\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "print(server.getsockname()[1], flush=True)\n"
        "held = server.accept()[0], *pty.openpty()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        port = int(child.stdout.readline())
        name = Path(f"/proc/{child.pid}/comm").read_text().strip()
        before = [one for one in remote_sessions() if one.what == f"'{name}'"]
        with socket.create_connection(("127.0.0.1", port)):
            assert child.stdout.readline() == "ready\n"
            found = [one for one in remote_sessions() if one.what == f"'{name}'"]
        child.communicate()
    wanted = RemoteSession(what=f"'{name}'", peer="127.0.0.1", local="127.0.0.1")
    assert wanted in found
    assert wanted not in before or os.environ.get("PYTEST_XDIST_WORKER")
