"""DPDK's example l3fwd between dl3gen's links."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dl3.lab.links import GENERATOR_MACS, NETWORKS
from dl3.lab.seat import Seat


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
