"""What systemd makes of the installed dl3d: each step is a function; the first that fails ends it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from installed import network
from installed.manager import FILE, call, is_active, is_closed, journal, main_pid, messages, run, shown, wait_until

N_RESTARTS = 10
EXPOSURE = 4.5  # most of systemd-analyze security, out of 10; without the sandbox it was 8.0
HERE = Path(__file__).parent
DROP_IN = Path("/run/systemd/system/dl3d.service.d/probe.conf")
KINDS = {
    "memif": "net_memif0,role=server,socket=/run/dl3/memif,socket-abstract=no",
    "af_xdp": "net_af_xdp0,iface=spare",
}


def without_a_file_it_is_not_started() -> None:
    """Installing starts the service, which must not fail then."""
    run("systemctl start dl3d")
    assert shown("ConditionResult") == "no"
    said = run("dl3d --check", 2)
    assert len(said.splitlines()) == 1, said
    assert str(FILE) in said, said
    assert not Path("/run/netns/dl3d").exists()


def a_mistake_in_the_file_is_said_once() -> None:
    """It does not help to try again."""
    network.write_configuration("ports: 1\n")
    run("systemctl start dl3d", 1)
    assert (shown("ActiveState"), shown("NRestarts")) == ("failed", "0")
    found = [entry for entry in journal() if entry["SYSLOG_IDENTIFIER"] == "dl3d"]
    assert [entry["PRIORITY"] for entry in found] == ["3"], found


def it_starts_with_its_namespace_and_holder() -> None:
    """Started means that it forwards."""
    network.write_configuration()
    run("systemctl start dl3d")
    assert is_active()
    assert is_active("dl3d-netns")
    assert is_active("dl3d-hold")
    assert call("status")["ready"] is True
    assert [row["held"] for row in call("taps")["taps"]] == [True, True]
    assert "dl3d-hold.service" in run(f"cat /proc/{shown('MainPID', 'dl3d-hold')}/cgroup")
    assert "dl3d-hold" not in run(
        "cat $(find /sys/fs/cgroup -path '*dl3d.service/cgroup.procs') | xargs ps -o comm= -p"
    )
    ready = [entry for entry in journal() if str(entry["MESSAGE"]).startswith("forwarding:")]
    assert [entry["PRIORITY"] for entry in ready] == ["6"], ready


def it_routes_by_a_bgp_session_over_a_tap() -> None:
    """The session, its routes, and packets that follow one of them."""
    network.give_addresses()
    network.start_session()
    network.start_stream()


def it_reloads() -> None:
    """Without a restart; a file with a mistake changes nothing."""
    before = main_pid()
    network.write_configuration(network.CONFIGURATION + "  classes: {ttl: {rate: 77}}\n")
    run("systemctl reload dl3d")
    wait_until(lambda: any(row["rate_pps"] == 77 for row in call("taps")["classes"]), "the new rate applied")
    assert not any("has no driver" in line for line in messages())
    network.write_configuration("ports: 1\n")
    run("systemctl reload dl3d", 1)
    assert is_active()
    assert main_pid() == before
    network.write_configuration()


def _interrupt(act: Callable[[], object]) -> float:
    """Let dl3d end, wait for the next one; the outage in ms."""
    before, began = main_pid(), time.monotonic()
    act()
    wait_until(lambda: main_pid() not in (0, before) and is_active(), "another dl3d was ready")
    return network.outage_ms(began, time.monotonic())


def _neither_session_nor_routes_suffer(act: Callable[[], object], n: int, what: str) -> None:
    """So often; only packets wait."""
    session = network.session()
    assert "Established" in session, session
    outages = []
    with network.start_monitor() as monitor:
        for _ in range(n):
            outages.append(_interrupt(act))
            assert network.session() == session
            assert network.n_routes() == network.N_ROUTES
        monitor.terminate()
    changes = network.MONITOR.read_text()
    assert "NO-CARRIER" not in changes, changes
    assert "Deleted" not in changes, changes
    outages.sort()
    print(f"  outage by {what}: {outages[0]:.0f} to {outages[-1]:.0f} ms, median {outages[len(outages) // 2]:.0f} ms")


def a_restart_keeps_session_and_routes() -> None:
    """`systemctl restart`."""
    _neither_session_nor_routes_suffer(lambda: run("systemctl restart dl3d"), N_RESTARTS, "systemctl restart")


def a_crash_keeps_session_and_routes() -> None:
    """`kill -9`, after which the service manager starts it again, each time."""
    kill = lambda: os.kill(main_pid(), signal.SIGKILL)  # noqa: E731
    _neither_session_nor_routes_suffer(kill, N_RESTARTS, "kill -9")


def a_killed_holder_is_replaced() -> None:
    """Another one keeps the carrier when dl3d is killed, too."""
    before = shown("MainPID", "dl3d-hold")
    os.kill(int(before), signal.SIGKILL)
    wait_until(lambda: shown("MainPID", "dl3d-hold") not in ("0", before), "another holder was there")
    wait_until(lambda: all(row["held"] for row in call("taps")["taps"]), "the holder had all TAP interfaces")
    a_crash = lambda: os.kill(main_pid(), signal.SIGKILL)  # noqa: E731
    _neither_session_nor_routes_suffer(a_crash, 1, "kill -9 after the holder")


def a_stopped_worker_brings_the_watchdog() -> None:
    """Stopped by a debugger; the rest of the process is well."""
    pid = main_pid()
    with subprocess.Popen(["python3", str(HERE / "worker.py"), str(pid)], stdout=subprocess.PIPE) as stopper:
        assert stopper.stdout
        assert stopper.stdout.readline() == b"stopped\n"
        began = time.monotonic()
        wait_until(lambda: main_pid() not in (0, pid) and is_active(), "the watchdog had started another dl3d")
    print(f"  a new dl3d {time.monotonic() - began:.0f} s after the worker stopped")
    assert any(re.match(r"dl3d.service: Watchdog timeout", line) for line in messages())
    assert any("worker 0 has not completed a loop" in line for line in messages())
    assert "Established" in network.session()


def its_account_closes() -> None:
    """Of all packets since it was started the last time."""
    network.stop_stream()
    wait_until(lambda: call("drops")["received"] > 0 and is_closed(), "the account was closed")


def its_sandbox_refuses_what_it_does_not_need() -> None:
    """A probe in the place of what the unit runs."""
    DROP_IN.parent.mkdir()
    DROP_IN.write_text(f"[Service]\nExecStartPre=/usr/bin/python3 {HERE}/probe.py\n")
    run("systemctl daemon-reload && systemctl restart dl3d")
    assert [entry["MESSAGE"] for entry in journal() if entry["SYSLOG_IDENTIFIER"] == "python3"] == []
    DROP_IN.unlink()
    DROP_IN.parent.rmdir()
    run("systemctl daemon-reload")
    figure = re.search(r"exposure level for dl3d.service: ([0-9.]+)", run("systemd-analyze security dl3d.service"))
    assert figure
    print(f"  systemd-analyze security: {figure[1]}")
    assert float(figure[1]) <= EXPOSURE


def it_works_with_other_kinds_of_ports() -> None:
    """In the sandbox."""
    run("ip link add spare type veth peer name spare1 && ip link set spare up && ip link set spare1 up")
    for kind, device in KINDS.items():
        network.write_configuration(
            f'memory: {{hugepages: never}}\nports:\n- {{name: {kind}, device: "{device}"}}\nlinux:\n'
        )
        run("systemctl restart dl3d")
        assert [row["name"] for row in call("ports")["ports"]] == [kind]
    network.write_configuration(
        "memory: {hugepages: never}\nports:\n- {name: vm, vhost: {socket: /run/dl3/vm.sock}}\nlinux:\n"
    )
    run("systemctl restart dl3d")
    assert [row["name"] for row in call("ports")["ports"]] == ["vm"]


def a_purge_leaves_nothing() -> None:
    """Neither files, nor units, processes, the namespace; except the operator's file, which is removed here."""
    FILE.unlink()
    run("dpkg --purge dl3 dl3d dl3gen")
    found = run(f"find / -xdev -path {HERE} -prune -o -name '*dl3*' -print; find /run /etc/systemd -name '*dl3*'")
    assert found == "", found
    assert run("ip netns list | grep dl3d", 1) == ""
    assert run("ps -e -o comm= | grep dl3", 1) == ""


STEPS = [
    without_a_file_it_is_not_started,
    a_mistake_in_the_file_is_said_once,
    it_starts_with_its_namespace_and_holder,
    it_routes_by_a_bgp_session_over_a_tap,
    it_reloads,
    a_restart_keeps_session_and_routes,
    a_crash_keeps_session_and_routes,
    a_killed_holder_is_replaced,
    its_account_closes,
    a_stopped_worker_brings_the_watchdog,
    its_sandbox_refuses_what_it_does_not_need,
    it_works_with_other_kinds_of_ports,
    a_purge_leaves_nothing,
]


def main() -> int:
    """1 at the first step that fails, with what the journal says."""
    network.lay_wires()
    for step in STEPS:
        began = time.monotonic()
        try:
            step()
        except Exception:
            print(f"failed: {step.__name__}\n{run('journalctl -b -q -n 60', None)}")
            raise
        print(f"passed: {step.__name__} ({time.monotonic() - began:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
