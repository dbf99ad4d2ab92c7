"""Whether guests run on KVM or are emulated. A /dev/kvm that can be opened is not enough: QEMU has to start on it."""

import subprocess
from pathlib import Path

from dl3.lab.guest import ACCELERATORS, PROGRAM
from dl3.model.lab import Accelerator

KVM = Path("/dev/kvm")
SECONDS = 30.0
END = b'{"execute": "qmp_capabilities"}\n{"execute": "quit"}\n'
EMULATED = "guests are emulated, so that rates say nothing about real ones"


def why_not() -> str:
    """Why KVM cannot be used; '' if it can."""
    try:
        KVM.open("r+b").close()
    except OSError as error:
        return f"no KVM: {KVM} cannot be opened ({error.strerror})"
    tried = [PROGRAM, *ACCELERATORS["kvm"], "-m", "64", "-nodefaults", "-display", "none", "-S", "-qmp", "stdio"]
    try:
        done = subprocess.run(tried, input=END, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"no KVM: QEMU did not start on it within {SECONDS:.0f} s"
    if done.returncode == 0:
        return ""
    words = done.stderr.decode(errors="replace").strip().splitlines()[:1] or [f"status {done.returncode}"]
    return f"no KVM: QEMU does not start on it ({words[0].removeprefix(f'{PROGRAM}: ')})"


def accelerator(is_emulated: bool) -> tuple[Accelerator, str]:
    """What guests run on, and a sentence if they are emulated."""
    why = "emulation was requested" if is_emulated else why_not()
    return ("tcg", f"{why}; {EMULATED}") if why else ("kvm", "")
