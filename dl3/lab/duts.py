"""The forwarders that the memif lab can put beside dl3gen, each started in its own way on the same terms."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from dl3.lab.links import (
    DUT_ADDRESSES,
    DUT_MACS,
    GENERATOR_ADDRESSES,
    GENERATOR_MACS,
    NAMES,
    NETWORKS,
    Links,
)


@dataclass(frozen=True)
class Seat:
    """What any forwarder is given: links, its core, frames at a time, EAL's memory."""

    links: Links
    core: int
    burst: int
    memory_mib: int


class Dut(Protocol):
    """A forwarder: how it is called, and how it is started."""

    @property
    def name(self) -> str:
        """As it stands in records."""

    def command(self, seat: Seat) -> Sequence[str]:
        """Write what it needs into the links' folder; the command that starts it."""

    def socket(self, seat: Seat) -> Path | None:
        """Where it answers questions, when it does."""


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
            "lanes": [{"core": seat.core}],
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


def eal(seat: Seat, lcores: str) -> tuple[str, ...]:
    """EAL's arguments of other DPDK programs."""
    devices = seat.links.devices("server")
    return (
        *("--no-pci", "--no-telemetry", "--in-memory", "--single-file-segments", "-m", str(seat.memory_mib)),
        *("--vdev", devices[0], "--vdev", devices[1], "--lcores", lcores, "--file-prefix", "dl3-dut", "--"),
    )


@dataclass(frozen=True)
class L3fwd:
    """DPDK's l3fwd with LPM, one IPv4 route for each direction. Its main lcore forwards."""

    program: Path
    name: str = "l3fwd"

    def command(self, seat: Seat) -> Sequence[str]:
        """On rules of its own; it wants some for IPv6 too."""
        rules4, rules6 = (seat.links.folder / f"rules{family}" for family in (4, 6))
        rules4.write_text("".join(f"R{NETWORKS[i]} {i}\n" for i in range(2)), encoding="ascii")
        rules6.write_text("R2001:db8::/32 1\n", encoding="ascii")
        return (
            *(str(self.program), *eal(seat, f"0@{seat.core}"), "-p", "0x3", "-P", "--no-numa"),
            *("--config=(0,0,0),(1,0,0)", "--parse-ptype", "--lookup=lpm"),
            *(f"--eth-dest={i},{GENERATOR_MACS[i]}" for i in range(2)),
            *(f"--rule_ipv4={rules4}", f"--rule_ipv6={rules6}"),
        )

    def socket(self, seat: Seat) -> None:
        """It has none."""
