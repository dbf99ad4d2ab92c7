"""dl3d between dl3gen's links."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dl3.dut.wired import WiredBed, streams_of
from dl3.lab.links import DUT_ADDRESSES, DUT_MACS, GENERATOR_ADDRESSES, GENERATOR_MACS, NAMES, NETWORKS
from dl3.lab.memif import MemifTerms, built, memif_lab
from dl3.lab.seat import Seat
from dl3.model.campaign import Setup, Traffic


@dataclass(frozen=True)
class Dl3d:
    """dl3d between the links: one route for what lies behind each, and others as they are given."""

    program: Path
    routes: tuple[str, ...] = ()
    route_files: tuple[Path, ...] = ()
    name: str = "dl3d"

    def file(self, seat: Seat) -> dict[str, Any]:
        """dl3d's file as a value."""
        devices = seat.links.devices("server")
        ports = [
            {"name": NAMES[i], "device": devices[i], "mac": DUT_MACS[i], "addresses": [DUT_ADDRESSES[i]]}
            for i in range(2)
        ]
        behind = [f"{NETWORKS[i]} via {GENERATOR_ADDRESSES[i]} dev {NAMES[i]}" for i in range(2)]
        return {
            "ports": ports,
            "lanes": [{"core": core} for core in seat.cores],
            "burst": seat.burst,
            "routes": [*behind, *self.routes],
            "route_files": [str(path) for path in self.route_files],
            "neighbours": [f"{GENERATOR_ADDRESSES[i]} lladdr {GENERATOR_MACS[i]} dev {NAMES[i]}" for i in range(2)],
            "memory": {"hugepages": "require", "mib": seat.memory_mib},
            "control": {"socket": str(self.socket(seat))},
        }

    def command(self, seat: Seat) -> Sequence[str]:
        """On a file of its own."""
        path = seat.links.folder / "dl3d.yaml"
        path.write_text(yaml.safe_dump(self.file(seat), sort_keys=False), encoding="utf-8")
        return str(self.program), str(path)

    def socket(self, seat: Seat) -> Path:
        """In the private folder."""
        return seat.links.folder / "dl3d.sock"


@dataclass(frozen=True)
class Kind:
    """dl3d of the build."""

    name: str = "dl3d"

    def missing(self, _options: Mapping[str, object]) -> str:
        """It is built with everything else."""
        return ""

    @contextmanager
    def opened(self, setup: Setup, traffic: Traffic, build: Path) -> Iterator[WiredBed]:
        """Over memif, a core each."""
        dut = Dl3d(built(build / "src" / "dl3d"))
        cores = setup.dut_cores or (1,)
        terms = MemifTerms(
            dut,
            dut_cores=cores,
            burst=setup.burst,
            dut_mib=setup.memory_mib,
            ring_bits=setup.descriptors.bit_length() - 1,
            build=build,
        )
        with memif_lab(terms) as lab:
            yield WiredBed(
                lab,
                streams_of(traffic),
                {"kind": self.name, "name": setup.dut.name, "configuration": dut.file(lab.seat)},
            )
