"""Facts about the machine and the build that affect results."""

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dl3.record.machine import machine, output_of, text_of, whole_output_of


class Facts(BaseModel):
    """The facts stored with every result. Strings that could not be determined are empty."""

    model_config = ConfigDict(frozen=True)

    cpu_model: str
    n_cpus: int
    caches: dict[str, str]
    numa_nodes: dict[str, str]
    kernel: str
    kernel_command_line: str
    huge_pages_2m: int
    huge_pages_2m_free: int
    memory_mib: int
    dpdk: str
    compiler: str
    build_flags: str
    drivers_within: list[str] = []  # DPDK drivers linked into dl3d and dl3gen
    default_idle: str = ""  # default `idle` of this build's dl3d
    network_devices: list[str]


def last_march(flags: str) -> str:
    """The effective -march flag, which is the last one."""
    found = re.findall(r"-march=(\S+)", flags)
    return str(found[-1]) if found else "default"


def build_flags(build: Path) -> str:
    """Compiler flags of the datapath, from the build's compile_commands.json."""
    commands = text_of(build / "compile_commands.json")
    found = re.search(r'"command": "([^"]*path/worker\.c[^"]*)"', commands)
    return " ".join(word for word in found[1].split() if word.startswith(("-O", "-m", "-D"))) if found else ""


def drivers_within(build: Path) -> list[str]:
    """Drivers linked statically by the build rather than loaded as plugins."""
    return sorted({f"net_{name}" for name in re.findall(r"librte_net_(\w+)\.a\b", text_of(build / "build.ninja"))})


def default_idle(dl3d: Path) -> str:
    """'poll' or 'sleep', from the program's example configuration; 'poll' if the example has no `idle`, '' without a
    program.
    """
    example = whole_output_of(str(dl3d), "--example")
    found = re.search(r"^idle: (\w+)", example, re.MULTILINE)
    return str(found[1]) if found else "poll" if example else ""


def collect(build: Path) -> Facts:
    """Collect all facts now."""
    return Facts(
        **machine(),
        dpdk=output_of("pkg-config", "--modversion", "libdpdk"),
        compiler=output_of("cc", "--version"),
        build_flags=build_flags(build),
        drivers_within=drivers_within(build),
        default_idle=default_idle(build / "src" / "dl3d"),
    )
