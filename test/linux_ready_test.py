"""dl3d is ready when its workers have all routes of Linux, not before.

The dump of IPv4 routes is held: a preloaded library answers reads from its socket with EAGAIN while a file exists.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.frames import forwarded, ip4, on
from harness.wire import wait_until
from harness.wired import Port, WiredForwarder, host_mac

from dl3.model.fault import Fault

N_ROUTES = 4000
N_ROUTES_6 = 100
SAID = "dl3d: forwarding: ports 2"
HELD_DUMP = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int held = -1; // the socket of the dump

ssize_t sendto(int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to, socklen_t room)
{
	ssize_t (*next)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "sendto");
	const struct nlmsghdr *message = bytes;
	const struct rtmsg *route = NLMSG_DATA(message);

	if (to && to->sa_family == AF_NETLINK && message->nlmsg_type == RTM_GETROUTE &&
		(message->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP && route->rtm_family == AF_INET && !route->rtm_table)
		held = fd;
	return next(fd, bytes, n, flags, to, room);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t (*next)(int, struct msghdr *, int) = dlsym(RTLD_NEXT, "recvmsg");

	if (fd != held || access(getenv("DL3_HOLD"), F_OK))
		return next(fd, message, flags);
	errno = EAGAIN;
	return -1;
}
"""


def _route(number: int) -> str:
    return f"20.{number >> 8}.{number & 255}.0/24"


@pytest.fixture
def hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """While this file exists, a dl3d started now does not get the IPv4 routes of a dump."""
    source, library = tmp_path / "held_dump.c", tmp_path / "held_dump.so"
    source.write_text(HELD_DUMP)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    monkeypatch.setenv("DL3_HOLD", str(tmp_path / "hold"))
    monkeypatch.setenv("ASAN_OPTIONS", "verify_asan_link_order=0")
    monkeypatch.setenv("LD_PRELOAD", str(library))
    return tmp_path / "hold"


@pytest.fixture
def wired(hold: Path) -> Iterator[WiredForwarder]:
    """Routes, neighbours and addresses in Linux, where they stay while dl3d restarts."""
    with WiredForwarder([Port("a"), Port("b")], linux={"keep": True}) as made:
        lines = [
            "address add 10.0.1.1/24 dev a",
            "address add 10.0.2.1/24 dev b",
            "address add 2001:db8:2::1/64 dev b nodad",
            f"neighbour add 10.0.2.2 lladdr {host_mac(1)} dev b",
            f"neighbour add 2001:db8:2::2 lladdr {host_mac(1)} dev b",
            *(f"route add {_route(number)} via 10.0.2.2" for number in range(N_ROUTES)),
            *(f"route add 2001:db8:{number + 256:x}::/48 via 2001:db8:2::2" for number in range(N_ROUTES_6)),
        ]
        batch = hold.with_name("batch")
        batch.write_text("\n".join(lines) + "\n")
        made.dl3d.taps.ip("-batch", str(batch))
        wait_until(lambda: _verdict(made, "20.0.7.7") == "forward", "it forwarded")
        yield made


def _verdict(wired: WiredForwarder, address: str) -> str:
    return str(wired.dl3d.call("route", address=address)["verdict"])


def _reads_ip4_routes(wired: WiredForwarder) -> bool:
    """Whether all that comes before them has been read."""
    try:
        return bool(wired.dl3d.call("mirror")["routes6"] >= N_ROUTES_6)
    except (OSError, Fault):
        return False


def _handed(wired: WiredForwarder, verdict: str) -> int:
    rows = {row["name"]: row["handed"] for row in wired.dl3d.call("drops")["verdicts"]}
    return int(rows[verdict])


def _comes_out(wired: WiredForwarder, frame: bytes) -> None:
    wired.wires["a"].send(frame)
    wait_until(lambda: forwarded(frame, 1) in wired.wires["b"].drain(), "the frame came out")


def it_is_ready_when_all_routes_are_there_and_linux_forwards_until_then(wired: WiredForwarder, hold: Path) -> None:
    wired.dl3d.kill()
    hold.touch()
    wired.dl3d.start_again()
    wait_until(lambda: _reads_ip4_routes(wired), "it read IPv4 routes")
    status = wired.dl3d.call("status")
    assert (status["ready"], status["ready_after_s"], status["mirror"]) == (False, None, "dumping")
    assert wired.dl3d.stderr.count(SAID) == 1, "the first dl3d said so, the second one not yet"
    assert _verdict(wired, "20.0.7.7") == "not_synced"
    wait_until(lambda: _verdict(wired, "2001:db8:100::7") == "forward", "IPv6 routes and neighbours did not wait")
    assert _verdict(wired, "10.0.1.1") == "local", "nor did our own addresses"
    _comes_out(wired, on(0, ip4("20.0.7.7")))
    assert _handed(wired, "not_synced") == 1
    hold.unlink()
    wired.dl3d.wait_ready()
    status = wired.dl3d.call("status")
    assert 0 < status["ready_after_s"] <= status["uptime_s"]
    assert status["mirror"] == "following"
    assert wired.dl3d.stderr.count(SAID) == 2
    verdicts = {_verdict(wired, _route(number).replace("0/24", "7")) for number in range(0, N_ROUTES, 100)}
    assert verdicts == {"forward"}
    assert _verdict(wired, "30.0.0.1") == "no_route"
    _comes_out(wired, on(0, ip4("20.0.7.7")))
    assert _handed(wired, "not_synced") == 1, "workers forward it themselves"
