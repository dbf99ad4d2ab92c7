"""Common to DPDK's own programs: EAL's arguments, and the version reported in the log."""

import re
from collections.abc import Sequence

from dl3.lab.endpoint import Device, Endpoint

INSTALL = "run 'tools/install-deps bench'"


def eal(endpoint: Endpoint, lcores: str) -> tuple[str, ...]:
    """EAL's arguments; `lcores` are pairs such as '0@1', separated by commas."""
    devices = endpoint.links.devices("server")
    pages = ("--no-huge",) if endpoint.page_kib == 4 else ("--in-memory", "--single-file-segments")
    channels = ("-n", str(endpoint.channels)) if endpoint.channels else ()
    return (
        *("-v", "--no-pci", "--no-telemetry", *pages, "-m", str(endpoint.memory_mib), *channels),
        *("--vdev", devices[0], "--vdev", devices[1], "--lcores", lcores, "--file-prefix", "dl3-dut", "--"),
    )


def version_in(log: str) -> str:
    """The version that EAL prints with -v."""
    found = re.search(r"RTE Version: '([^']+)'", log)
    return found[1] if found else "unknown"


def about(command: Sequence[str], device: Device) -> dict[str, object]:
    """Version and command, for the record."""
    log = device.processes[0].log.read_text(encoding="utf-8", errors="replace")
    return {"version": f"{device.name}, {version_in(log)}", "configuration": {"command": list(command)}}
