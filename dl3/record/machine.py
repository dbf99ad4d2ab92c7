"""Properties of a machine. Uses only Python's standard library, so that it can also run on another machine."""

import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any


def text_of(path: str | Path) -> str:
    """A small kernel file, or ''."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def number_in(text: str, word: str) -> int:
    """The value of a /proc/meminfo field, or 0 if missing."""
    found = re.search(rf"^{re.escape(word)}:\s+(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def cpu_model() -> str:
    """Name of the first processor, with family, model and stepping because cloud providers mask the name."""
    words = {
        key.strip(): value.strip()
        for key, _, value in (line.partition(":") for line in text_of("/proc/cpuinfo").split("\n\n")[0].splitlines())
    }
    numbers = "-".join(words.get(key, "?") for key in ("cpu family", "model", "stepping"))
    return f"{words.get('model name', platform.machine())} ({numbers})"


def caches() -> dict[str, str]:
    """Size of each cache of the first processor, by level and type."""
    found = {}
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind = text_of(cache / "level"), text_of(cache / "type")
        found[f"L{level} {kind.lower()}"] = f"{text_of(cache / 'size')} for cpus {text_of(cache / 'shared_cpu_list')}"
    return found


def numa_nodes() -> dict[str, str]:
    """CPU list of each NUMA node."""
    nodes = sorted(Path("/sys/devices/system/node").glob("node[0-9]*"))
    return {node.name: text_of(node / "cpulist") for node in nodes}


def network_devices() -> list[str]:
    """PCI network devices as 'address vendor:device driver'."""
    found = []
    for device in sorted(Path("/sys/bus/pci/devices").glob("*")):
        if text_of(device / "class").startswith("0x02"):
            driver = (device / "driver").resolve().name if (device / "driver").exists() else "no driver"
            found.append(f"{device.name} {text_of(device / 'vendor')}:{text_of(device / 'device')} {driver}")
    return found


def whole_output_of(*command: str) -> str:
    """Complete output of a command, or '' on failure."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def output_of(*command: str) -> str:
    """First line of a command's output, or ''."""
    return (whole_output_of(*command).splitlines() or [""])[0]


def machine() -> dict[str, Any]:
    """All properties by name; those that could not be determined are empty."""
    memory = text_of("/proc/meminfo")
    return {
        "cpu_model": cpu_model(),
        "n_cpus": os.cpu_count() or 0,
        "caches": caches(),
        "numa_nodes": numa_nodes(),
        "kernel": platform.release(),
        "kernel_command_line": text_of("/proc/cmdline"),
        "huge_pages_2m": number_in(memory, "HugePages_Total"),
        "huge_pages_2m_free": number_in(memory, "HugePages_Free"),
        "memory_mib": number_in(memory, "MemTotal") // 1024,
        "network_devices": network_devices(),
    }


if __name__ == "__main__":
    print(json.dumps(machine()))
