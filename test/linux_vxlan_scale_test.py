"""4,096 VNIs, and 64,000 MAC addresses, each behind a remote end of its own: from Linux to what workers read.

Times are printed, not checked, since the machine is shared. As many bridges as workers serve have a VXLAN device each,
whose tables have all addresses; the other devices are in no bridge.
"""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from harness.million import resident_mb
from harness.network import network
from harness.router import Dl3dRouter, port_name
from harness.wire import Wire, wait_until
from harness.wired import BUILD

from dl3.lab.namespace import End, Lab

pytestmark = pytest.mark.long
IS_SANITIZED = BUILD.name != "build"
N_DEVICES = 512 if IS_SANITIZED else 4096
N_BRIDGES = 64
N_ADDRESSES = 6_400 if IS_SANITIZED else 64_000
MOST_MIB = 16.0
PATIENCE_S = 1200.0
REMOTE_MAC = "02:00:00:01:01:02"


def _end(number: int) -> str:
    return f"172.{16 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def _mac(number: int) -> str:
    return f"02:aa:00:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"


def _device_lines() -> list[str]:
    lines = [f"address add {network(4, 1, 1)}/24 dev {port_name(1)}", f"address add {network(4, 2, 1)}/32 dev lo"]
    lines.append(f"neighbour add {network(4, 1, 2)} lladdr {REMOTE_MAC} dev {port_name(1)}")
    lines.append(f"route add 172.16.0.0/12 via {network(4, 1, 2)}")
    for number in range(1, N_DEVICES + 1):
        words = f"id {number} local {network(4, 2, 1)} dstport 4789 nolearning noudpcsum"
        lines.append(f"link add vx{number} type vxlan {words}")
    for number in range(1, N_BRIDGES + 1):
        lines.append(f"link add br{number} up type bridge mcast_snooping 0")
        lines.append(f"link set vx{number} master br{number} up")
    return [*lines, f"link set {port_name(0)} master br1 up", f"link set {port_name(1)} up"]


def _address_lines(what: str) -> str:
    """For `bridge -batch`: in the table of the device and in that of its bridge, as zebra writes them."""
    rows = []
    for number in range(N_ADDRESSES):
        device = f"vx{1 + number % N_BRIDGES}"
        rows.append(f"fdb {what} {_mac(number)} dev {device} dst {_end(number)} self master extern_learn\n")
    return "".join(rows)


@dataclass
class Bed:
    """The router, and the far ends of its cables."""

    router: Dl3dRouter
    wires: list[Wire]


@pytest.fixture(scope="module")
def bed() -> Iterator[Bed]:
    with Lab() as lab:
        router, hosts = Dl3dRouter(lab), lab.namespace("hosts", silent=True)
        ends = [End(hosts, f"e{link}", f"02:00:00:01:{link:02x}:02") for link in range(2)]
        for link, end in enumerate(ends):
            lab.cable(router.end(link), end)
        router.start(2)
        wires = [Wire(end) for end in ends]
        yield Bed(router, wires)
        for wire in wires:
            wire.close()
        router.close()


def _tell(router: Dl3dRouter, program: str, text: str) -> None:
    command = [program, "-n", router.namespace.name, "-batch", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def _is_settled(router: Dl3dRouter) -> bool:
    """A comparison of so much may take longer than a reply should."""
    with contextlib.suppress(TimeoutError):
        return not router.differences()
    return False


def _settle(router: Dl3dRouter) -> None:
    wait_until(lambda: _is_settled(router), "workers had what Linux has", PATIENCE_S)


def _worker_mib(router: Dl3dRouter) -> float:
    table = router.call("status")["table"]
    return float(table["worker_bytes_vxlan"] + table["worker_bytes_macs"]) / 2**20


def _is_sent_to(frame: bytes, number: int) -> bool:
    """Whether it is in VXLAN to this remote end, with the VNI of its address."""
    to = bytes(int(part) for part in _end(number).split("."))
    return frame[30:34] == to and int.from_bytes(frame[46:49], "big") == 1 + number % N_BRIDGES


def many_of_linux_fit_into_little_memory(bed: Bed, capsys: pytest.CaptureFixture[str]) -> None:
    router = bed.router
    before, begin = _worker_mib(router), time.monotonic()
    _tell(router, "ip", "\n".join(_device_lines()) + "\n")
    _settle(router)
    with_devices = time.monotonic()
    _tell(router, "bridge", _address_lines("add"))
    in_linux = time.monotonic()
    _settle(router)
    in_workers, used = time.monotonic(), _worker_mib(router)
    assert router.forwarder
    with capsys.disabled():
        print(
            f"\n  {N_DEVICES:,} VXLAN devices of Linux: {with_devices - begin:.1f} s; {N_ADDRESSES:,} addresses behind as "
            f"many remote ends: in Linux after {in_linux - with_devices:.1f} s, in the fast path "
            f"{in_workers - in_linux:.2f} s later; workers read {used:.1f} MiB ({before:.1f} before), "
            f"{resident_mb(router.forwarder.process.pid):.0f} MB resident"
        )
    bridges = router.call("bridges")["bridges"]
    assert len(bridges) == N_BRIDGES
    assert sum(row["static_macs"] + row["learnt_macs"] for row in bridges) >= N_ADDRESSES
    assert before < used < MOST_MIB
    _check_frames(bed.wires)
    _tell(router, "bridge", _address_lines("del"))
    _settle(router)
    router.check()


def _check_frames(wires: list[Wire]) -> None:
    """Those of the first bridge, which has a port, are sent to their remote ends."""
    for number in range(0, N_ADDRESSES, N_BRIDGES * 50):
        found: list[bytes] = []
        wires[0].send(bytes.fromhex(_mac(number).replace(":", "") + "02000000bb01" + "88b5") + bytes(46))

        def is_out(number: int = number, found: list[bytes] = found) -> bool:
            found.extend(wires[1].drain())
            return any(_is_sent_to(one, number) for one in found)

        wait_until(is_out, f"a frame to {_mac(number)} was sent to {_end(number)}")
