"""The distribution's testpmd: a cross-connect, the minimum work of a forwarder."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from dl3.dut import dpdk
from dl3.dut.wired import WiredKind
from dl3.lab.endpoint import Device, Endpoint
from dl3.lab.links import GENERATOR_MACS, NAMES
from dl3.lab.single import started
from dl3.model.campaign import Setup
from dl3.model.fault import UsageFault

PROGRAM = "dpdk-testpmd"
MBUFS_PER_DESCRIPTOR = 8  # two ports, two queues each, and the same amount in flight
MODES = ("io", "mac", "macswap")


@dataclass(frozen=True)
class Testpmd:
    """The first lcore runs the command line and forwards nothing, so it shares the first core."""

    mode: str
    name: str = "testpmd"
    ready_words: str = "Press enter to exit"

    def command(self, endpoint: Endpoint) -> Sequence[str]:
        """Each core forwards from one port."""
        if len(endpoint.cores) > len(NAMES):
            raise UsageFault(f"testpmd: {len(endpoint.cores)} cores, but two ports of one queue keep {len(NAMES)} busy")
        lcores = ",".join(f"{i}@{core}" for i, core in enumerate((endpoint.core, *endpoint.cores)))
        return (
            *(
                "stdbuf",
                "-oL",
                PROGRAM,
                *dpdk.eal(endpoint, lcores),
                f"--nb-cores={len(endpoint.cores)}",
                f"--forward-mode={self.mode}",
            ),
            *(
                f"--burst={endpoint.burst}",
                f"--rxd={endpoint.descriptors}",
                f"--txd={endpoint.descriptors}",
                "--auto-start",
            ),
            *("--disable-link-check", f"--total-num-mbufs={MBUFS_PER_DESCRIPTOR * endpoint.descriptors}"),
            *(f"--eth-peer={i},{GENERATOR_MACS[i]}" for i in range(2)),
        )

    def socket(self, _endpoint: Endpoint) -> None:
        """There is none."""

    def started(self, endpoint: Endpoint) -> AbstractContextManager[Device]:
        """See dl3.dut.kind.Subject."""
        return started(self, endpoint)

    def about(self, endpoint: Endpoint, device: Device) -> Mapping[str, object]:
        """Version as reported by EAL, and the command."""
        return dpdk.about(self.command(endpoint), device)


def make(_setup: Setup, options: Mapping[str, str], _build: Path) -> Testpmd:
    """With the selected forwarding mode."""
    return Testpmd(options["mode"])


def needs() -> str:
    """See dl3.dut.kind.Kind.missing."""
    return "" if shutil.which(PROGRAM) else f"{PROGRAM} is not installed: {dpdk.INSTALL} (package dpdk-dev)"


KIND = WiredKind(
    name="testpmd",
    make=make,
    needs=needs,
    honours=frozenset(("cores", "dut_cores", "memory_mib", "page_kib", "channels", "burst", "descriptors")),
    forwards_white_paper=True,
    choices={"mode": MODES, "wire": ("memif", "veth", "vhost")},
)
