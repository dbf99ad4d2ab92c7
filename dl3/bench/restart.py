"""A restart of dl3d with many routes in Linux: when workers have all of them, and the packets lost meanwhile.

dl3d is killed while datagrams to addresses of all routes arrive at a known rate, and started again at once. Linux keeps
routes, neighbours and addresses, as in a crash. Datagrams are sent and received by packet sockets at veth links.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from dl3.bench.workplace import DL3D, built
from dl3.control.linux import Mirror
from dl3.control.replies import Drops
from dl3.lab.command import run
from dl3.lab.forwarder import Forwarder
from dl3.lab.namespace import End, Lab, Namespace
from dl3.model.fault import Fault

NAMES = ("left", "right")
OWN_MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
HOST_MACS = ("02:00:00:00:00:11", "02:00:00:00:00:12")
FILL_SECONDS = 300.0
POLL_S = 0.01
STEP_S = 0.002  # between two groups of datagrams
QUIET_S = 0.5  # nothing arrives any more
IPV4, UDP, HEADERS = 0x0800, 17, 28
MARK = b"dl3 restart"
BUFFER_BYTES = 64 << 20
SO_RCVBUFFORCE = 33
TWICE = "mac_not_ours"
NOT_RECEIVED, BY_LINUX = "not received by dl3d", "by Linux"


class Restarted(BaseModel):
    """One restart."""

    model_config = ConfigDict(frozen=True)

    routes4: int
    routes6: int
    ready_s: float  # from exec until workers have all routes
    dump_s: float
    sent: int
    received: int
    lost: dict[str, int]  # by name; what is not named was lost before a worker polled, or in Linux


@dataclass(frozen=True)
class Plan:
    """How many routes, and the traffic."""

    routes4: int = 1_000_000
    routes6: int = 100_000
    pps: float = 10_000.0
    restarts: int = 3


def prefix(number: int) -> str:
    """/24s starting at 20.0.0.0; the loopback network is left out."""
    first = 20 + (number >> 16)
    return f"{first + (first >= 127)}.{number >> 8 & 255}.{number & 255}.0/24"


def prefix6(number: int) -> str:
    """/48s of documentation space and beyond."""
    return f"3fff:{number >> 16:x}:{number & 0xFFFF:x}::/48"


def batch(plan: Plan) -> Iterator[str]:
    """Lines for `ip -batch`."""
    for i, name in enumerate(NAMES, start=1):
        yield f"address add 10.0.{i}.1/24 dev {name}"
        yield f"address add 2001:db8:{i}::1/64 dev {name} nodad"
    yield f"neighbour replace 10.0.2.2 lladdr {HOST_MACS[1]} dev right"
    yield f"neighbour replace 2001:db8:2::2 lladdr {HOST_MACS[1]} dev right"
    for number in range(plan.routes4):
        yield f"route add {prefix(number)} via 10.0.2.2"
    for number in range(plan.routes6):
        yield f"route add {prefix6(number)} via 2001:db8:2::2"


def lost_by_name(sent: int, received: int, drops: Drops) -> dict[str, int]:
    """Where the datagrams were lost that were sent since the old dl3d ended. `drops`: of the new one.

    Until its socket is bound, net_af_packet also receives frames of the other port, which drops them as mac_not_ours;
    their own port receives them, too.
    """
    named = {row.name: row.packets for row in drops.verdicts if row.name != "forward" and row.packets}
    missed = max(0, sent - (drops.received - named.pop(TWICE, 0)))
    rest = max(0, sent - received - missed - sum(named.values()))
    return {name: n for name, n in {NOT_RECEIVED: missed, **named, BY_LINUX: rest}.items() if n}


class Datagrams:
    """A sender at a rate to addresses of all routes, and a receiver that counts."""

    def __init__(self, hosts: tuple[Namespace, Namespace], plan: Plan) -> None:
        self.sent = self.received = 0
        self._plan, self._stop = plan, threading.Event()
        with hosts[0].entered():
            self._leaves = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with hosts[1].entered():
            self._arrives = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(IPV4))
        self._arrives.bind(("eth0", IPV4))
        self._arrives.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self._arrives.settimeout(QUIET_S)
        self._threads = [threading.Thread(target=work) for work in (self._send, self._count)]

    def __enter__(self) -> "Datagrams":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._leaves.close()
        self._arrives.close()

    def stop(self) -> None:
        """Stop sending, and receive what is in flight."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        start, step = time.monotonic(), max(1, self._plan.routes4 // 10_007)
        while not self._stop.is_set():
            for _ in range(max(0, int((time.monotonic() - start) * self._plan.pps) - self.sent)):
                number = self.sent * step % self._plan.routes4
                self._leaves.sendto(MARK, (prefix(number).replace("0/24", "7"), 9))
                self.sent += 1
            time.sleep(STEP_S)

    def _count(self) -> None:
        while True:
            try:
                packet = self._arrives.recv(256)
            except TimeoutError:
                if self._stop.is_set():
                    return
                continue
            self.received += packet[9] == UDP and packet[HEADERS : HEADERS + len(MARK)] == MARK


@dataclass(frozen=True)
class Site:
    """dl3d between two hosts, with its routes in Linux."""

    dl3d: Forwarder
    hosts: tuple[Namespace, Namespace]
    plan: Plan

    def has_all(self) -> bool:
        """Whether workers have the routes."""
        plan, routes = self.plan, self.dl3d.call("status")["routes"]
        return bool(routes["ip4"] >= plan.routes4 and routes["ip6"] >= plan.routes6)

    def restart(self) -> Restarted:
        """Kill dl3d and start it again, under traffic."""
        with Datagrams(self.hosts, self.plan) as traffic:
            wait_for(lambda: traffic.received > self.plan.pps / 10, "datagrams came through dl3d")
            self.dl3d.kill()
            sent, received = traffic.sent, traffic.received
            self.dl3d.start_again()
            self.dl3d.wait_ready(FILL_SECONDS)
            came = traffic.received
            wait_for(lambda: traffic.received > came + self.plan.pps / 2, "dl3d forwarded again")
            traffic.stop()
            sent, received = traffic.sent - sent, traffic.received - received
        drops = Drops.model_validate(self.dl3d.call("drops"))
        mirror = Mirror.model_validate(self.dl3d.call("mirror"))
        return Restarted(
            routes4=mirror.routes4,
            routes6=mirror.routes6,
            ready_s=self.dl3d.call("status")["ready_after_s"],
            dump_s=mirror.last_dump_s,
            sent=sent,
            received=received,
            lost=lost_by_name(sent, received, drops),
        )


def wait_for(is_so: Callable[[], bool], what: str) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + FILL_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise Fault(f"waited {FILL_SECONDS:.0f} s in vain until {what}")
        time.sleep(POLL_S)


def configuration() -> str:
    """dl3d's file: two ports on veth links."""
    ports = [{"name": name, "device": f"net_af_packet{i},iface={name},framecnt=4096"} for i, name in enumerate(NAMES)]
    whole = {"ports": ports, "control": {"socket": "@SOCKET@"}, "memory": {"hugepages": "never"}}
    return str(yaml.safe_dump(whole, sort_keys=False))


def host_of(lab: Lab, wires: Namespace, i: int) -> Namespace:
    """A host beyond a port, with dl3d as its router."""
    host = lab.namespace(f"host{i}")
    host.set_sysctl("net.ipv6.conf.all.disable_ipv6", "1")  # it sends nothing else
    lab.cable(End(wires, NAMES[i], OWN_MACS[i]), End(host, "eth0", HOST_MACS[i]))
    host.ip("address", "add", f"10.0.{i + 1}.2/24", "dev", "eth0")
    host.ip("neighbour", "replace", f"10.0.{i + 1}.1", "lladdr", OWN_MACS[i], "dev", "eth0")
    host.ip("route", "add", "default", "via", f"10.0.{i + 1}.1")
    return host


@contextmanager
def site(plan: Plan, program: Path = DL3D) -> Iterator[Site]:
    """The lab, filled; everything is removed afterwards."""
    with ExitStack() as stack:
        lab = stack.enter_context(Lab())
        wires = lab.namespace("wires", silent=True)
        hosts = host_of(lab, wires, 0), host_of(lab, wires, 1)
        dl3d = Forwarder(built(program, "make"), configuration(), wires, linux={"keep": True})
        stack.callback(dl3d.close)
        dl3d.wait_ready()
        lines = dl3d.folder / "batch"
        lines.write_text("".join(f"{line}\n" for line in batch(plan)), encoding="ascii")
        run(["ip", "-n", dl3d.taps.name, "-batch", str(lines)], FILL_SECONDS)
        made = Site(dl3d, hosts, plan)
        wait_for(made.has_all, "workers had the routes")
        yield made


def measure(plan: Plan, report: Callable[[Restarted], None]) -> list[Restarted]:
    """All restarts; `report` is called with each one."""
    found = []
    with site(plan) as made:
        for _ in range(plan.restarts):
            found.append(made.restart())
            report(found[-1])
    return found


def middle(found: list[Restarted]) -> Restarted:
    """The restart with the median time; of an even number, the lower one."""
    return sorted(found, key=lambda one: one.ready_s)[(len(found) - 1) // 2]
