"""Where the programs are that run in guests. An emulated CPU lacks instructions of this machine's, so that guests get the
build for any CPU, which is made if it is missing.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

from dl3.lab.command import run
from dl3.lab.guest_image import need_packages
from dl3.lab.kind import KERNELS
from dl3.lab.pair import TOP
from dl3.lab.single import built
from dl3.model.fault import Fault
from dl3.model.lab import Topology

L2FWD = Path("/usr/share/dpdk/examples/l2fwd/main.c")
TESTPMD = Path("/usr/bin/dpdk-testpmd")
RINGS = {"rx_descriptors": "#define RX_DESC_DEFAULT 1024", "tx_descriptors": "#define TX_DESC_DEFAULT 1024"}
PORTABLE_S = 1800.0
Say = Callable[[str], None]


def build_for(topology: Topology, say: Say) -> Path:
    """The build whose programs run in the guests."""
    if not topology.is_emulated or not (TOP / "Makefile").exists():
        return TOP / "build"
    portable = TOP / "build-portable"
    if not (portable / "src" / "dl3d").exists():
        say("building dl3d and dl3gen for emulated CPUs, in build-portable: this is done once")
        run(["make", "-s", "-C", str(TOP), "portable"], PORTABLE_S)
    return portable


def l2fwd(cache: Path, keys: dict[str, int]) -> Path:
    """DPDK's example, compiled once for each size of its rings, as it is otherwise."""
    name = "-".join(("l2fwd", *(f"{key}-{n}" for key, n in keys.items())))
    program = cache / name
    if program.exists():
        return program
    need_packages({"cc": "gcc", "pkg-config": "pkg-config"})
    try:
        text = L2FWD.read_text(encoding="utf-8")
    except OSError as error:
        raise Fault(f"{L2FWD} is not there, the source of l2fwd: apt install dpdk-dev") from error
    for key, n in keys.items():
        if RINGS[key] not in text:
            raise Fault(f"the source of l2fwd has no line '{RINGS[key]}': use --forwarder testpmd or dl3d")
        text = text.replace(RINGS[key], f"{RINGS[key].rpartition(' ')[0]} {n}")
    flags = run(["pkg-config", "--cflags", "--libs", "libdpdk"]).split()
    draft = cache / f"{name}.draft"
    command = ["cc", "-O2", "-w", "-x", "c", "-", *flags, "-o", str(draft)]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise Fault(f"l2fwd cannot be compiled: {done.stderr.strip()[-300:]}; apt install libdpdk-dev")
    draft.rename(program)
    return program


def binary_of(program: str, cache: Path, build: Path, keys: dict[str, int]) -> Path:
    """The file of a program of a station; a kernel has none."""
    if program == "l2fwd":
        return l2fwd(cache, keys)
    if program == "testpmd":
        if not TESTPMD.exists():
            raise Fault(f"{TESTPMD} is not there: apt install dpdk-dev")
        return TESTPMD
    return Path() if program in KERNELS else built(build / "src" / program)
