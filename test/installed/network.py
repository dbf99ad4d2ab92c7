"""Two neighbours of dl3d, `peer` with BGP and `host`, and the routing daemon at the TAP interfaces."""

import itertools
import subprocess
from pathlib import Path

from installed import stream
from installed.manager import FILE, run, wait_until

HERE = Path(__file__).parent
N_ROUTES = 100
RECEIVED = Path("/run/received")
MONITOR = Path("/run/monitor")
STREAM: list["subprocess.Popen[bytes]"] = []
PORTS = {"left": "peer", "right": "host"}

CONFIGURATION = """memory: {hugepages: never}
workers: [{core: 1}]
ports:
- {name: left, device: "net_af_packet0,iface=left0"}
- {name: right, device: "net_af_packet1,iface=right0"}
linux:
"""
BIRD = """log "/run/bird-%(name)s.log" all;
timeformat protocol iso long ms;
router id %(own)s;
protocol device {}
%(more)s
protocol bgp session {
	local %(own)s as %(own_as)d;
	neighbor %(other)s as %(other_as)d;
	ipv4 { import all; export %(export)s; };
}
"""
INSTALLED = "protocol kernel { ipv4 { export where source = RTS_BGP; }; }"


def lay_wires() -> None:
    """A wire to each neighbour; that of a port has no address, and says nothing of its own."""
    for port, name in PORTS.items():
        run(f"ip netns add {name} && ip link add {port}0 type veth peer name wire netns {name}")
        run(f"echo 1 >/proc/sys/net/ipv6/conf/{port}0/disable_ipv6 && ip link set {port}0 up")
        run(f"ip -n {name} link set lo up && ip -n {name} link set wire up")
        # Otherwise Linux leaves checksums to a device that there is not.
        run(f"ethtool -K {port}0 tx off && ip netns exec {name} ethtool -K wire tx off")
    run("ip -n peer address add 10.0.1.2/24 dev wire && ip -n peer address add 198.18.0.1/32 dev lo")
    run("ip -n peer route add default via 10.0.1.1")
    run("ip -n host address add 10.0.2.2/24 dev wire && ip -n host route add default via 10.0.2.1")


def give_addresses() -> None:
    """At the TAP interfaces, as an operator does once."""
    run("ip -n dl3d address add 10.0.1.1/24 dev left && ip -n dl3d address add 10.0.2.1/24 dev right")


def start_bird(name: str, namespace: str, **words: object) -> None:
    """BIRD, which becomes a daemon."""
    path = Path(f"/run/bird-{name}.conf")
    path.write_text(BIRD % {"name": name, **words})
    run(f"ip netns exec {namespace} bird -c {path} -s /run/bird-{name}.ctl -P /run/bird-{name}.pid")


def start_session() -> None:
    """A BGP session over the TAP interface, by which dl3d's namespace gets routes."""
    routes = "\n".join(f"route 198.18.{i}.0/24 blackhole;" for i in range(N_ROUTES))
    left = {"own": "10.0.1.1", "own_as": 65001, "other": "10.0.1.2", "other_as": 65002}
    start_bird("router", "dl3d", **left, more=INSTALLED, export="none")
    statics = "protocol static { ipv4; " + routes + " }"
    start_bird(
        "peer", "peer", own="10.0.1.2", own_as=65002, other="10.0.1.1", other_as=65001, more=statics, export="all"
    )
    wait_until(lambda: "Established" in session(), "the BGP session was established")
    wait_until(lambda: n_routes() == N_ROUTES, "Linux had the routes of BGP")


def session() -> str:
    """BIRD's line of the session, with the time of its last change."""
    return run("birdc -r -s /run/bird-router.ctl show protocols session | tail -1", None)


def n_routes() -> int:
    """Routes of BGP in the kernel that it uses."""
    lines = run("ip -n dl3d route show proto bird").splitlines()
    return len([line for line in lines if "linkdown" not in line])


def start_stream() -> None:
    """Packets from the host to one of these routes."""
    in_peer = ["ip", "netns", "exec", "peer", "python3", str(HERE / "stream.py"), "receive", str(RECEIVED)]
    in_host = ["ip", "netns", "exec", "host", "python3", str(HERE / "stream.py"), "send"]
    STREAM.extend(subprocess.Popen(command) for command in (in_peer, in_host))
    wait_until(lambda: bool(stream.arrivals(RECEIVED)), "packets arrived")


def stop_stream() -> None:
    """Both ends."""
    for process in STREAM:
        process.kill()
        process.wait()


def outage_ms(began: float, ended: float) -> float:
    """The longest time without packets since it began, once one has come through the dl3d that was ready when it ended."""
    wait_until(lambda: stream.arrivals(RECEIVED)[-1][1] > ended, "packets arrived again")
    times = [at for _, at in stream.arrivals(RECEIVED)]
    return 1000 * max(after - before for before, after in itertools.pairwise(times) if after > began)


def start_monitor() -> "subprocess.Popen[bytes]":
    """All changes of links and routes at the TAP interfaces."""
    return subprocess.Popen(["ip", "-n", "dl3d", "monitor", "link", "route"], stdout=MONITOR.open("wb"))


def write_configuration(text: str = CONFIGURATION) -> None:
    """The file of the service."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text)
