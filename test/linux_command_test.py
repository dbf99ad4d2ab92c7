"""Linux as control plane, as shown and changed by the command."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.netlink_buffers import unread_socket
from harness.shell import batch
from harness.stall import stalled
from harness.wire import wait_until
from harness.wired import DL3D, TOP, Port, config_text

from dl3.lab.forwarder import Forwarder
from dl3.model.fault import Fault

PORTS = [
    Port("left", device="net_ring0", keys={"mac": "02:00:00:00:00:01"}),
    Port("right", device="net_ring1", keys={"mac": "02:00:00:00:00:02"}),
]


def _forwarder(**linux: object) -> Forwarder:
    return Forwarder(DL3D, config_text(PORTS, memory={"hugepages": "never"}), linux=linux)


@pytest.fixture(scope="module")
def dl3d() -> Iterator[Forwarder]:
    with _forwarder() as made:
        made.wait_ready()
        yield made


def _command(dl3d: Forwarder, *words: str) -> list[str]:
    return [str(TOP / "bin" / "dl3"), *words, "--socket", str(dl3d.socket)]


def _dl3(dl3d: Forwarder, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(dl3d, *words), capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("what", "word"),
    [
        ("taps", "left"),
        ("classes", "routing"),
        ("mirror", "following"),
        ("unsupported", "Workers support everything"),
        ("routes", ""),
    ],
)
def show_has_output_for_people_and_programs(dl3d: Forwarder, what: str, word: str) -> None:
    wait_until(lambda: dl3d.call("mirror")["state"] == "following", "the mirror follows")
    shown = _dl3(dl3d, "show", what)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert word in shown.stdout
    machine = _dl3(dl3d, "show", what, "--json")
    assert (machine.returncode, machine.stderr) == (0, "")
    assert json.loads(machine.stdout)


def routes_are_announced_only_to_linux(dl3d: Forwarder) -> None:
    with pytest.raises(Fault, match="Linux is the control plane; configure routes there: ip -n NAMESPACE route add"):
        dl3d.call("routes.change", changes=[{"op": "add", "route": "10.0.0.0/8 dev left"}])


def a_reload_changes_the_limit_of_a_class(dl3d: Forwarder) -> None:
    before = dl3d.file.read_text()
    dl3d.file.write_text(before.replace("keep: false", "keep: false\n  classes: {ttl: {rate: 7, burst: 3}}"))
    dl3d.call("reload")
    ttl = next(row for row in dl3d.call("taps")["classes"] if row["name"] == "ttl")
    assert (ttl["rate_pps"], ttl["burst"]) == (7, 3)
    dl3d.file.write_text(before.replace("keep: false", "keep: true"))
    with pytest.raises(Fault, match=r"needs a restart: linux\.keep; nothing was changed"):
        dl3d.call("reload")
    dl3d.file.write_text(before)
    dl3d.call("reload")


def a_tap_that_was_deleted_comes_back_at_a_reload(dl3d: Forwarder) -> None:
    dl3d.taps.ip("link", "delete", "dev", "right")
    wait_until(lambda: dl3d.call("taps")["taps"][1]["ifindex"] == 0, "dl3d knows of it")
    assert "Gone from Linux: right" in _dl3(dl3d, "show", "taps").stdout
    wait_until(lambda: "TAP interface 'right'" in dl3d.stderr, "the log names it")
    dl3d.call("reload")
    assert dl3d.call("taps")["taps"][1]["ifindex"] > 0
    wait_until(lambda: "LOWER_UP" in dl3d.taps.ip("link", "show", "dev", "right"), "it has a carrier")


def _is_level(dl3d: Forwarder) -> bool:
    """Whether workers have all that Linux has; while tables change, nobody can tell."""
    try:
        return bool(dl3d.call("verify")["listed"] == [])
    except Fault:
        return False


def route_and_verify_ask_linux(dl3d: Forwarder) -> None:
    dl3d.taps.ip("address", "add", "10.0.1.1/24", "dev", "left")
    dl3d.taps.ip("route", "add", "10.9.0.0/16", "via", "10.0.1.2")
    wait_until(lambda: dl3d.call("route", address="10.9.1.2")["found"], "workers have the route")
    # An address of IPv6 counts a second or two after its interface has come up, which is a change, too.
    wait_until(lambda: not dl3d.taps.ip("-6", "address", "show", "tentative"), "all addresses were taken")
    wait_until(lambda: _is_level(dl3d), "workers have all that Linux has")
    shown = _dl3(dl3d, "show", "route", "10.9.1.2")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert "Linux unicast to 10.9.0.0/16 via 10.0.1.2 dev left (table 254, metric 0)" in lines
    assert "Linux agrees yes" in lines
    for words in (("verify",), ("verify", "--sample", "3")):
        verified = _dl3(dl3d, *words)
        assert (verified.returncode, verified.stderr) == (0, "")
        assert "routes: no difference" in verified.stdout
    whole, sample = (json.loads(_dl3(dl3d, "verify", "--json", *more).stdout) for more in ((), ("--sample", "999")))
    assert sample["compared"] == whole["compared"] < 999, "no more than there are"


def _n_asking(dl3d: Forwarder) -> int:
    """Clients of its socket, including those not accepted yet."""
    return Path("/proc/net/unix").read_text().count(f" {dl3d.socket}\n") - 1


def what_was_never_announced_to_the_mirror_is_found_and_repaired(dl3d: Forwarder) -> None:
    taps, pid = dl3d.taps, dl3d.process.pid
    neighbour = "neighbour replace 10.0.3.2 dev left nud permanent lladdr"
    batch(taps, ["address add 10.0.3.1/24 dev left", f"{neighbour} 02:00:00:00:03:02"])
    batch(taps, [f"route add 10.{number}.0.0/16 via 10.0.3.2" for number in (30, 31)])
    wait_until(lambda: dl3d.call("route", address="10.31.0.1")["found"], "workers have the routes")
    wait_until(lambda: _is_level(dl3d), "workers have all that Linux has")
    before = dl3d.call("mirror")["drifted"]
    with stalled(pid), unread_socket(pid):
        changes = ("route del 10.30.0.0/16", "route add 10.32.0.0/16 via 10.0.3.2")
        batch(taps, [f"{neighbour} 02:00:00:00:03:03", *changes])
        n_before = _n_asking(dl3d)  # it is stopped, and may not have closed the last one
        asked = subprocess.Popen(_command(dl3d, "verify", "--json"), stdout=subprocess.PIPE, text=True)
        # The audit repairs everything within about a second: the command has to run before that.
        wait_until(lambda: _n_asking(dl3d) > n_before, "dl3 verify waits for its answer")
    reported, _ = asked.communicate(timeout=120)
    assert json.loads(reported)["listed"] == [
        "10.30.0.0/16: workers have a route that Linux does not have",
        "10.32.0.0/16: Linux has a route that workers do not have",
        "neighbour 10.0.3.2 dev left: workers and Linux send to different MAC addresses",
    ]
    assert asked.returncode == 1
    wait_until(lambda: dl3d.call("mirror")["drifted"] > before, "the audit has found it")
    wait_until(lambda: _is_level(dl3d), "all was read again")


@pytest.mark.parametrize("prefix", ["default", "10.40.0.0/16"])
def the_audit_looks_inside_prefixes(dl3d: Forwarder, prefix: str) -> None:
    """Prefixes whose first addresses are covered by other routes, or by none."""
    taps, pid = dl3d.taps, dl3d.process.pid
    neighbours = [f"neighbour replace 10.0.4.{i} dev left nud permanent lladdr 02:00:00:00:04:0{i}" for i in (2, 3)]
    routes = [f"route replace {each} via 10.0.4.2" for each in (prefix, "10.40.0.0/24")]
    batch(taps, ["address replace 10.0.4.1/24 dev left", *neighbours, *routes])
    wait_until(lambda: dl3d.call("route", address="10.40.9.9")["via"] == "10.0.4.2", "workers have the routes")
    before = dl3d.call("mirror")["drifted"]
    with stalled(pid), unread_socket(pid):
        batch(taps, [f"route replace {prefix} via 10.0.4.3"])
    wait_until(lambda: dl3d.call("mirror")["drifted"] > before, "the audit has found it")
    wait_until(lambda: dl3d.call("route", address="10.40.9.9")["via"] == "10.0.4.3", "all was read again")
    batch(taps, [f"route del {each}" for each in (prefix, "10.40.0.0/24")])
