"""dl3d with twins between dl3gen's memif links, and perhaps further ports on cables with real neighbours."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dl3.lab.duts import Seat
from dl3.lab.links import (
    DUT_ADDRESSES,
    DUT_MACS,
    GENERATOR_ADDRESSES,
    GENERATOR_MACS,
    NAMES,
    NETWORKS,
)
from dl3.lab.memif import MemifLab, MemifTerms, memif_lab
from dl3.lab.namespace import Lab, Namespace
from harness.answers import CORES
from harness.house import BUILD, DL3D
from harness.router import SETTINGS, router_mac


@dataclass(frozen=True)
class TwinnedDl3d:
    """dl3d with twins in `twins`: ports left and right on memif, others on the cables that end in `wires`."""

    twins: Namespace
    wires: Namespace
    cables: Sequence[str] = ()
    name: str = "dl3d"

    def file(self, seat: Seat) -> dict[str, Any]:
        """dl3d's file as a value."""
        devices = seat.links.devices("server")
        ports = [{"name": NAMES[i], "device": devices[i], "mac": DUT_MACS[i]} for i in range(2)]
        ports += [
            {"name": cable, "device": f"net_af_packet{i},iface={cable},framecnt=4096", "mac": router_mac(i)}
            for i, cable in enumerate(self.cables)
        ]
        return {
            "linux": {"namespace": self.twins.name, "keep": False},
            "ports": ports,
            "lanes": [{"core": seat.core}],
            "burst": seat.burst,
            "memory": {"hugepages": "require", "mib": seat.memory_mib},
            "control": {"socket": str(self.socket(seat))},
        }

    def command(self, seat: Seat) -> Sequence[str]:
        """On a file of its own, where the cables end."""
        path = seat.links.folder / "dl3d.yaml"
        path.write_text(yaml.safe_dump(self.file(seat), sort_keys=False), encoding="utf-8")
        return self.wires.enter(str(DL3D), str(path))

    def socket(self, seat: Seat) -> Path:
        """In the private folder."""
        return seat.links.folder / "dl3d.sock"


def configure_links(twins: Namespace) -> None:
    """What the static lab has in its file, said to Linux: addresses, what lies behind each link, neighbours."""
    for i, name in enumerate(NAMES):
        twins.ip("address", "add", DUT_ADDRESSES[i], "dev", name)
        twins.ip("neighbour", "replace", GENERATOR_ADDRESSES[i], "lladdr", GENERATOR_MACS[i], "dev", name)
        twins.ip("route", "add", NETWORKS[i], "via", GENERATOR_ADDRESSES[i])


@dataclass(frozen=True)
class Site:
    """Where the twins and the cables' ends of a dl3d are; made before dl3d."""

    lab: Lab
    twins: Namespace
    wires: Namespace

    @classmethod
    def made(cls, lab: Lab) -> "Site":
        """In namespaces of their own, the twins' one as a router wants it."""
        site = cls(lab, lab.namespace("router"), lab.namespace("wires", silent=True))
        site.twins.run("sysctl", "-qw", *(f"{key}={value}" for key, value in SETTINGS.items()))
        return site


@contextmanager
def twinned_lab(site: Site, cables: Sequence[str] = ()) -> Iterator[MemifLab]:
    """dl3gen and such a dl3d, a core each; the cables' ends are there already."""
    dut = TwinnedDl3d(site.twins, site.wires, cables)
    terms = MemifTerms(dut=dut, build=BUILD, generator_core=CORES[0], dut_core=CORES[-1])
    with memif_lab(terms) as made:
        configure_links(site.twins)
        yield made
