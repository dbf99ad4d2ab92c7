"""The configuration of grout."""

from pathlib import Path

from dl3.dut import grout
from dl3.lab.endpoint import Endpoint
from dl3.lab.links import Links

SEAT = Endpoint(Links(Path("/private"), 11), cores=(1,), burst=64, memory_mib=256)


def routes_to_each_link_with_its_neighbour_known() -> None:
    lines = grout.lines(SEAT)
    assert lines[0] == "affinity cpus set control 1 datapath 1"
    assert lines.index("nexthop add l3 iface left address 10.0.1.2 mac 02:00:00:00:00:11") < lines.index(
        "route add 198.18.0.0/16 via 10.0.1.2"
    )
    assert "route add 2001:2:0:2::/64 via 2001:db8:2::2" in lines
    assert grout.command(SEAT)[-3:] == ["--", "-m", "256"]
