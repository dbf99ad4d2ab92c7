"""A million routes from BIRD by BGP through FRR into the kernel, and their effects."""

import re
import time
from collections.abc import Callable
from pathlib import Path

from dl3.bench.restart import Datagrams, Plan, prefix
from dl3.lab.daemons import Bird, Frr
from dl3.lab.namespace import End, Lab, Namespace
from harness.router import Router, port_name

BGPD = """
router bgp 65000
 bgp router-id 10.0.0.1
 no bgp ebgp-requires-policy
 neighbor 10.0.0.2 remote-as 65001
 neighbor 10.0.0.2 timers 30 90
 neighbor 10.0.0.2 timers connect 1
"""
BIRD = """
router id 10.0.0.2;
protocol device {}
protocol static many { ipv4;
include "@FOLDER@/routes.conf";
}
protocol bgp up {
  local 10.0.0.2 as 65001; neighbor 10.0.0.1 as 65000; hold time 90; keepalive time 30;
  connect delay time 1; connect retry time 1; error wait time 1, 2;
  ipv4 { import none; export where source = RTS_STATIC; next hop self; };
}
"""
POLL_S = 0.05


def _prefixes_of(namespace: Namespace) -> int:
    """The number of prefixes in the kernel's IPv4 trie, including those of table local."""
    text = namespace.run("cat", "/proc/net/fib_triestat")
    main = text[text.index("Main:") :] if "Main:" in text else text
    found = re.search(r"Prefixes:\s+(\d+)", main)
    return int(found[1]) if found else 0


def wait_for(is_so: Callable[[], bool], timeout_s: float) -> float:
    """Poll until the condition holds; returns the time at which it did."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s"
        time.sleep(POLL_S)
    return time.monotonic()


class Million:
    """BIRD beyond port p0 announces this many routes to FRR next to the TAP interfaces; a host beyond p1 sends."""

    def __init__(self, lab: Lab, router: Router, number: int) -> None:
        self.router, self.number = router, number
        self._n_own = 0
        self.teller = self._host(lab, 0)
        self.sender = self._host(lab, 1)
        self.frr: Frr | None = None
        self.bird: Bird | None = None

    def _host(self, lab: Lab, number: int) -> Namespace:
        made = lab.namespace(f"n{number}")
        lab.cable(self.router.end(number), End(made, "eth0", f"02:00:00:01:{number:02x}:02"))
        made.ip("address", "add", f"10.0.{number}.2/24", "dev", "eth0")
        made.ip("route", "add", "default", "via", f"10.0.{number}.1")
        return made

    def start(self) -> None:
        """Start the sessions; routes arrive over time."""
        for number in range(2):
            self.router.namespace.ip("address", "add", f"10.0.{number}.1/24", "dev", port_name(number))
        self._n_own = _prefixes_of(self.router.namespace)
        self.frr = Frr(self.router.namespace, {"zebra": "", "bgpd": BGPD})
        routes = "".join(f"route {prefix(number)} blackhole;\n" for number in range(self.number))
        self.bird = Bird(self.teller, BIRD, {"routes.conf": routes})

    def n_kernel(self) -> int:
        """Routes announced by BIRD that the kernel has."""
        return _prefixes_of(self.router.namespace) - self._n_own

    def tell(self, is_on: bool) -> None:
        """Make BIRD announce its routes, or withdraw all of them."""
        assert self.bird
        self.bird.ask("enable" if is_on else "disable", "many")

    def close(self) -> None:
        """Stop the daemons."""
        for daemons in (self.bird, self.frr):
            if daemons:
                daemons.close()


def datagrams(million: Million, pps: float) -> Datagrams:
    """Datagrams at a known rate to addresses across all routes, counted where they leave the router."""
    return Datagrams((million.sender, million.teller), Plan(routes4=million.number, routes6=0, pps=pps))


def resident_mb(pid: int) -> float:
    """Memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024 / 1e6
