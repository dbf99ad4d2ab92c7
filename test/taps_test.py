"""The ports' TAP interfaces in Linux: across a crash and restart, removed by others, and conflicting with others."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.frames import ip4, on
from harness.wire import wait_until
from harness.wired import DL3D, Port, WiredForwarder, port_mac

from dl3.lab.namespace import Lab, Namespace
from dl3.model.fault import Fault

GOOD = """\
ports: [{name: a, device: net_null0}, {name: b, device: net_null1}]
linux: {namespace: NAMESPACE}
control: {socket: SOCKET}
memory: {hugepages: never}
"""


def _wired(**linux: object) -> WiredForwarder:
    return WiredForwarder([Port("a"), Port("b")], linux=linux, memory={"hugepages": "never"})


@pytest.fixture
def wired() -> Iterator[WiredForwarder]:
    with _wired() as made:
        yield made


@pytest.fixture
def keeping_taps() -> Iterator[WiredForwarder]:
    with _wired(keep=True) as made:
        yield made


def _show(wired: WiredForwarder, tap: str) -> str:
    return wired.dl3d.taps.ip("-d", "link", "show", "dev", tap)


def _wait_for_carrier(wired: WiredForwarder) -> None:
    wait_until(lambda: all("LOWER_UP" in _show(wired, tap) for tap in "ab"), "both TAP interfaces had carrier")


def _index(wired: WiredForwarder, tap: str) -> str:
    return _show(wired, tap).split(":")[0]


def _punts(wired: WiredForwarder) -> bool:
    """Whether a packet for Linux, sent just now, has reached TAP interface a."""
    before = wired.dl3d.call("taps")["taps"][0]["punted"]
    wired.wires["a"].send(on(0, ip4("10.0.1.1")))
    time.sleep(0.05)
    return bool(wired.dl3d.call("taps")["taps"][0]["punted"] > before)


def a_tap_has_its_port_s_name_address_mtu_and_carrier(wired: WiredForwarder) -> None:
    _wait_for_carrier(wired)
    assert "only dl3d sees" not in wired.dl3d.stderr
    for index, tap in enumerate("ab"):
        text = _show(wired, tap)
        for words in ("tun type tap", "multi_queue", "mtu 1500", port_mac(index)):
            assert words in text, text


def a_tap_loses_and_gets_carrier_with_its_port(wired: WiredForwarder) -> None:
    _wait_for_carrier(wired)
    far = wired.wires["a"].end
    far.namespace.ip("link", "set", "dev", far.device, "down")
    wait_until(lambda: "NO-CARRIER" in _show(wired, "a"), "the TAP interface had lost carrier")
    wait_until(lambda: wired.dl3d.stderr.splitlines()[-1] == "dl3d: port a: link down", "the log told it")
    assert "LOWER_UP" in _show(wired, "b")
    far.namespace.ip("link", "set", "dev", far.device, "up")
    _wait_for_carrier(wired)
    wait_until(lambda: wired.dl3d.stderr.splitlines()[-1] == "dl3d: port a: link up", "the log told it")


def a_port_takes_all_frames_while_its_tap_has_a_mac_address_more(wired: WiredForwarder) -> None:
    def is_promiscuous() -> bool:
        return "PROMISC" in wired.namespace.ip("link", "show", "dev", "a")

    _wait_for_carrier(wired)
    assert not is_promiscuous()
    wired.dl3d.taps.ip("link", "add", "vrrp", "link", "a", "up", "type", "macvlan", "mode", "private")
    wait_until(is_promiscuous, "the port's device was promiscuous")
    wired.dl3d.taps.ip("link", "delete", "vrrp")
    wait_until(lambda: not is_promiscuous(), "the port's device was selective again")


def a_crash_takes_neither_carrier_nor_routes(keeping_taps: WiredForwarder) -> None:
    wired = keeping_taps
    taps = wired.dl3d.taps
    _wait_for_carrier(wired)
    taps.ip("addr", "add", "10.0.1.1/24", "dev", "a")
    taps.ip("route", "add", "10.2.0.0/16", "via", "10.0.1.2")
    index = _index(wired, "a")
    with subprocess.Popen(["ip", "-n", taps.name, "monitor", "link", "route"], stdout=subprocess.PIPE) as monitor:
        wired.dl3d.kill()
        with pytest.raises(subprocess.TimeoutExpired):
            monitor.wait(0.5)
        assert "LOWER_UP" in _show(wired, "a")
        assert "linkdown" not in taps.ip("route", "show")
        wired.dl3d.start_again()
        wired.dl3d.wait_ready()
        with pytest.raises(subprocess.TimeoutExpired):
            monitor.wait(0.5)
        monitor.terminate()
        printed = monitor.communicate()[0].decode()
    assert "NO-CARRIER" not in printed, printed
    assert "Deleted" not in printed, printed
    assert _index(wired, "a") == index
    rows = wired.dl3d.call("taps")["taps"]
    assert all(row["adopted"] and row["held"] and row["carrier"] for row in rows), rows
    assert "10.2.0.0/16 via 10.0.1.2 dev a" in taps.ip("route", "show")


def the_new_dl3d_s_tap_gets_packets_again(keeping_taps: WiredForwarder) -> None:
    wired = keeping_taps
    wired.dl3d.taps.ip("addr", "add", "10.0.1.1/24", "dev", "a")
    wired.dl3d.kill()
    wired.dl3d.start_again()
    wired.dl3d.wait_ready()
    wait_until(lambda: _punts(wired), "the TAP interface took a packet")


def a_dl3d_that_is_being_killed_is_followed_at_once(keeping_taps: WiredForwarder) -> None:
    wired = keeping_taps
    for _ in range(3):
        killed = wired.dl3d.process
        killed.kill()
        wired.dl3d.start_again()
        wired.dl3d.wait_ready()
        assert killed.wait(60.0) < 0
    _wait_for_carrier(wired)
    assert wired.dl3d.stop() == 0, wired.dl3d.stderr


def a_clean_stop_takes_taps_and_namespace_along_unless_they_are_kept(wired: WiredForwarder) -> None:
    name = wired.dl3d.taps.name
    assert Path(f"/run/netns/{name}").exists()
    assert wired.dl3d.stop() == 0
    assert not Path(f"/run/netns/{name}").exists()


def a_file_can_be_checked_while_its_dl3d_runs(wired: WiredForwarder) -> None:
    command = wired.namespace.enter(str(DL3D), "--check", str(wired.dl3d.file))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def a_clean_stop_leaves_taps_that_are_kept(keeping_taps: WiredForwarder) -> None:
    _wait_for_carrier(keeping_taps)
    assert keeping_taps.dl3d.stop() == 0
    assert "LOWER_UP" in _show(keeping_taps, "a")


def a_deleted_tap_is_named_once_and_made_again_by_reload(wired: WiredForwarder) -> None:
    wired.dl3d.taps.ip("link", "delete", "dev", "a")
    wait_until(lambda: "was deleted" in wired.dl3d.stderr, "the log named the TAP interface")
    wired.wires["a"].send(on(0, ip4("10.0.1.1")))
    wait_until(lambda: bool({"port_disabled", "tap_refused"} & set(wired.account().drops)), "its packet was dropped")
    wired.dl3d.call("reload")
    _wait_for_carrier(wired)
    wait_until(lambda: _punts(wired), "the new TAP interface took a packet")
    assert wired.dl3d.stderr.count("was deleted") == 1


def a_renamed_tap_goes_on_under_its_new_name(wired: WiredForwarder) -> None:
    taps = wired.dl3d.taps
    taps.ip("link", "set", "dev", "a", "down")
    taps.ip("link", "set", "dev", "a", "name", "uplink")
    taps.ip("link", "set", "dev", "uplink", "up")
    wait_until(lambda: "was renamed to 'uplink'" in wired.dl3d.stderr, "the log told the new name")
    row = wired.dl3d.call("taps")["taps"][0]
    assert (row["port"], row["name"]) == ("a", "uplink")
    assert wired.dl3d.stderr.count("was renamed to") == 1


def a_deleted_namespace_is_named_and_dl3d_goes_on(wired: WiredForwarder) -> None:
    subprocess.run(["ip", "netns", "delete", wired.dl3d.taps.name], check=True)
    wait_until(lambda: "was deleted" in wired.dl3d.stderr, "the log named the namespace")
    wired.wires["a"].send(on(0, ip4("10.0.1.1")))
    assert wired.settle(1).received >= 1
    assert wired.dl3d.stop() == 0


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    with Lab() as lab:
        yield lab.namespace("taps")


def _refusal(tmp_path: Path, namespace: str, *before: str, check: bool = False) -> str:
    """The output of a dl3d that does not start."""
    file = tmp_path / "dl3d.yaml"
    file.write_text(GOOD.replace("NAMESPACE", namespace).replace("SOCKET", str(tmp_path / "dl3d.sock")))
    words = [*before, str(DL3D), *(["--check"] if check else []), str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done
    lines = done.stderr.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize("check", [False, True], ids=["start", "check"])
@pytest.mark.parametrize(
    ("making", "words"),
    [
        ("link add name b type veth peer name other", "another interface has the name of its TAP interface"),
        ("tuntap add dev b mode tap", "a TAP interface without multi_queue already has this name"),
        ("tuntap add dev b mode tun multi_queue", "another interface has the name of its TAP interface"),
    ],
    ids=["veth", "one_queue", "tun"],
)
def a_taken_name_is_refused_and_nothing_changed(
    tmp_path: Path, namespace: Namespace, making: str, words: str, check: bool
) -> None:
    namespace.ip(*making.split())
    before = namespace.ip("-d", "link", "show")
    printed = _refusal(tmp_path, namespace.name, check=check)
    assert words in printed, printed
    assert "port 'b'" in printed, printed
    assert namespace.ip("-d", "link", "show") == before


def a_namespace_that_is_invisible_to_others_is_named(tmp_path: Path) -> None:
    name = f"unseen{os.getpid()}"
    file, log = tmp_path / "dl3d.yaml", tmp_path / "log"
    text = GOOD.replace("{namespace: NAMESPACE}", "{keep: false}").replace("SOCKET", str(tmp_path / f"{name}.sock"))
    file.write_text(text)
    # Like ip netns exec.
    words = ["unshare", "--mount", "--propagation", "slave", str(DL3D), str(file)]
    with log.open("w") as printed, subprocess.Popen(words, stderr=printed) as process:
        wait_until(lambda: "forwarding: ports 2" in log.read_text(), "it ran")
        process.terminate()
    assert f"network namespace '{name}' is only visible to dl3d" in log.read_text()
    assert not Path(f"/run/netns/{name}").exists()


def a_missing_namespace_is_refused(tmp_path: Path) -> None:
    printed = _refusal(tmp_path, "no-such-namespace")
    assert "network namespace 'no-such-namespace' does not exist" in printed, printed


def missing_rights_are_named(tmp_path: Path, namespace: Namespace) -> None:
    printed = _refusal(tmp_path, namespace.name, "setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    assert "CAP_NET_ADMIN" in printed, printed
    with pytest.raises(Fault):
        namespace.ip("link", "show", "dev", "a")


OLD_KERNEL = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

ssize_t sendto(int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to, socklen_t room)
{
	ssize_t (*next)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
	const struct nlmsghdr *message = bytes;

	next = dlsym(RTLD_NEXT, "sendto");
	if (!to || to->sa_family != AF_NETLINK || message->nlmsg_type != RTM_GETNEXTHOP)
		return next(fd, bytes, n, flags, to, room);
	errno = EOPNOTSUPP;
	return -1;
}
"""


@pytest.mark.parametrize("check", [False, True], ids=["start", "check"])
def a_kernel_without_next_hop_objects_is_refused_and_nothing_changed(
    tmp_path: Path, namespace: Namespace, check: bool
) -> None:
    source, library = tmp_path / "old_kernel.c", tmp_path / "old_kernel.so"
    source.write_text(OLD_KERNEL)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    before = namespace.ip("-d", "link", "show")
    pretend = ("env", f"LD_PRELOAD={library}", "ASAN_OPTIONS=verify_asan_link_order=0")
    printed = _refusal(tmp_path, namespace.name, *pretend, check=check)
    assert "this kernel has no next-hop objects" in printed, printed
    assert namespace.ip("-d", "link", "show") == before


def a_missing_device_file_is_named(tmp_path: Path, namespace: Namespace) -> None:
    hide = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "sh")
    printed = _refusal(tmp_path, namespace.name, *hide)
    assert "cannot open /dev/net/tun" in printed, printed
