"""A virtual machine with Debian's own kernel on this machine's files, for features our kernel lacks (VLAN, VRF).

KVM is not required: QEMU emulates, which is about ten times slower; a guest boots in about five seconds.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dl3.lab.guest import boot, command
from dl3.lab.guest_image import made
from harness.wired import TOP

GUEST = TOP / "build" / "guest"
MEMORY_MIB = 3072


def make_guest() -> None:
    """Make what guests boot, if it is not there."""
    made(GUEST)


def guest_command(script: Path, memory: Sequence[str] = ("-m", str(MEMORY_MIB))) -> list[str]:
    """QEMU for a guest that runs a shell script of this machine; `memory` are the arguments for that."""
    return command("tcg", 2, [*memory, *boot(GUEST, TOP, script, {})])


def run_in_guest(commands: str, timeout_s: float) -> tuple[int, str]:
    """Run shell commands in a new guest, in the top folder of the project; returns their status and output.

    All files of this machine are readable; writes are discarded with the guest. /tmp and /run are empty, except for
    the project if it is there.
    """
    make_guest()
    with tempfile.NamedTemporaryFile("w", suffix=".sh", dir=GUEST, encoding="utf-8") as script:
        script.write(f"cd {TOP}\n{commands}\n")
        script.flush()
        done = subprocess.run(
            guest_command(Path(script.name)),
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
