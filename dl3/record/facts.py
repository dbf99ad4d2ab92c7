"""The facts of the machine and of the build that a figure depends on."""

import os
import platform
import re
import subprocess
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class Facts(BaseModel):
    """What stands beside every result. Text that could not be found out is empty."""

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
    network_devices: list[str]


def text_of(path: str | Path) -> str:
    """A small file of the kernel's, or nothing."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def number_in(text: str, word: str) -> int:
    """The number behind a word of /proc/meminfo, 0 without it."""
    found = re.search(rf"^{re.escape(word)}:\s+(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def cpu_model() -> str:
    """The first processor's name, with family, model and stepping, because clouds hide the name."""
    words = {
        key.strip(): value.strip()
        for key, _, value in (line.partition(":") for line in text_of("/proc/cpuinfo").split("\n\n")[0].splitlines())
    }
    numbers = "-".join(words.get(key, "?") for key in ("cpu family", "model", "stepping"))
    return f"{words.get('model name', platform.machine())} ({numbers})"


def caches() -> dict[str, str]:
    """Size of each cache of the first processor, by level and kind."""
    found = {}
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind = text_of(cache / "level"), text_of(cache / "type")
        found[f"L{level} {kind.lower()}"] = f"{text_of(cache / 'size')} for cpus {text_of(cache / 'shared_cpu_list')}"
    return found


def numa_nodes() -> dict[str, str]:
    """The processors of each node."""
    nodes = sorted(Path("/sys/devices/system/node").glob("node[0-9]*"))
    return {node.name: text_of(node / "cpulist") for node in nodes}


def network_devices() -> list[str]:
    """Devices of class network on the PCI bus, 'address vendor:device driver'."""
    found = []
    for device in sorted(Path("/sys/bus/pci/devices").glob("*")):
        if text_of(device / "class").startswith("0x02"):
            driver = (device / "driver").resolve().name if (device / "driver").exists() else "no driver"
            found.append(f"{device.name} {text_of(device / 'vendor')}:{text_of(device / 'device')} {driver}")
    return found


def output_of(*command: str) -> str:
    """The first line that a command prints, or nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout.splitlines() or [""])[0]


def last_march(flags: str) -> str:
    """The -march that counts: the last one."""
    found = re.findall(r"-march=(\S+)", flags)
    return str(found[-1]) if found else "default"


def build_flags(build: Path) -> str:
    """The compiler's flags of our packet path, from the build's own list of commands."""
    commands = text_of(build / "compile_commands.json")
    found = re.search(r'"command": "([^"]*path/worker\.c[^"]*)"', commands)
    return " ".join(word for word in found[1].split() if word.startswith(("-O", "-m", "-D"))) if found else ""


def collect(build: Path) -> Facts:
    """Read all facts now."""
    memory = text_of("/proc/meminfo")
    return Facts(
        cpu_model=cpu_model(),
        n_cpus=os.cpu_count() or 0,
        caches=caches(),
        numa_nodes=numa_nodes(),
        kernel=platform.release(),
        kernel_command_line=text_of("/proc/cmdline"),
        huge_pages_2m=number_in(memory, "HugePages_Total"),
        huge_pages_2m_free=number_in(memory, "HugePages_Free"),
        memory_mib=number_in(memory, "MemTotal") // 1024,
        dpdk=output_of("pkg-config", "--modversion", "libdpdk"),
        compiler=output_of("cc", "--version"),
        build_flags=build_flags(build),
        network_devices=network_devices(),
    )
