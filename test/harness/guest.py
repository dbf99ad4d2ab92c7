"""A virtual machine with Debian's own kernel on this machine's files, for features our kernel lacks (VLAN, VRF).

KVM is not required: QEMU emulates, which is about ten times slower; a guest boots in about five seconds.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.wired import TOP

GUEST = TOP / "build" / "guest"
MEMORY_MIB = 3072
SMALL_MIB = 2048
NOT_WANTED = ("serial-getty@ttyS0.service", "getty@tty1.service", "apt-daily.timer", "apt-daily-upgrade.timer")
UNIT = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sh -c 'echo "guest: up"; {command}; echo "guest: left with $?"'
ExecStopPost=/bin/systemctl --force --force poweroff
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
"""


def _machine(root: Path, words: str, memory: Sequence[str]) -> list[str]:
    """QEMU for a guest that sees the files below `root`; `words` are for its initial RAM disk and its init."""
    return [
        *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", *memory),
        *("-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"),
        *("-kernel", str(GUEST / "vmlinuz"), "-initrd", str(GUEST / "initrd")),
        *("-append", f"console=ttyS0 quiet panic=-1 {words}"),
        *("-virtfs", f"local,path={root},mount_tag=root,security_model=none,readonly=on,multidevs=remap"),
    ]


def guest_command(script: Path, memory: Sequence[str] = ("-m", str(MEMORY_MIB))) -> list[str]:
    """QEMU for a guest that runs a shell script of this machine; `memory` are the arguments for that."""
    return _machine(Path("/"), f"guest.script={script} guest.modules={GUEST}/kernel guest.top={TOP}", memory)


def _run(command: Sequence[str], timeout_s: float) -> tuple[int, str]:
    """Status and output of what runs in the guest."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout_s,
        env=os.environ,
    )
    text = done.stdout.decode(errors="replace").replace("\r", "")
    left = re.search(r"^guest: left with (\d+)$", text, re.MULTILINE)
    assert left, f"the guest did not come to its end: {text[-2000:]}"
    return int(left[1]), text[text.index("guest: up") :]


def run_in_guest(commands: str, timeout_s: float) -> tuple[int, str]:
    """Run shell commands in a new guest, in the top folder of the project; returns their status and output.

    All files of this machine are readable; writes are discarded with the guest. /tmp and /run are empty, except for
    the project if it is there.
    """
    subprocess.run([TOP / "tools" / "make-guest"], check=True)
    with tempfile.NamedTemporaryFile("w", suffix=".sh", dir=GUEST, encoding="utf-8") as script:
        script.write(f"cd {TOP}\n{commands}\n")
        script.flush()
        return _run(guest_command(Path(script.name)), timeout_s)


def boot(root: Path, command: str, timeout_s: float) -> tuple[int, str]:
    """Boot the Debian with systemd below `root` in a guest, run a command at its end; return its status and output.

    Writes are discarded with the guest; `root` itself gets the kernel's modules and a unit for the command.
    """
    subprocess.run([TOP / "tools" / "make-guest"], check=True)
    shutil.copytree(GUEST / "kernel" / "lib" / "modules", root / "usr" / "lib" / "modules", dirs_exist_ok=True)
    units = root / "etc" / "systemd" / "system"
    (units / "guest.service").write_text(UNIT.format(command=command))
    wanted = units / "multi-user.target.wants" / "guest.service"
    wanted.unlink(missing_ok=True)
    wanted.symlink_to("/etc/systemd/system/guest.service")
    words = "guest.init=/lib/systemd/systemd systemd.unit=multi-user.target systemd.show_status=0"
    masks = " ".join(f"systemd.mask={unit}" for unit in NOT_WANTED)
    return _run(_machine(root, f"{words} {masks}", ("-m", str(SMALL_MIB))), timeout_s)
