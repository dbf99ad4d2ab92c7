"""Why the SR-IOV cases of the white paper are no lab of guests here."""

import subprocess

from dl3.lab.guest import PACKAGES, PROGRAM

CAMPAIGN = "a machine with virtual functions repeats the cases 2.1 to 2.7 with 'dl3 bench run white-paper'"


def igb_lacks() -> str:
    """Why QEMU cannot emulate a card with virtual functions; '' if it can."""
    try:
        done = subprocess.run([PROGRAM, "-device", "help"], capture_output=True, text=True, timeout=60)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return f"QEMU is not installed (apt install {PACKAGES[PROGRAM]})"
    return (
        ""
        if '"igb"' in done.stdout
        else "this QEMU has no igb card, the one with virtual functions that it emulates from 8.0 on"
    )


def why_not() -> str:
    """One sentence."""
    lacks = (
        igb_lacks()
        or "an emulated igb forwards a few thousand frames/s, which says nothing about the white paper's 10 Gbit/s cards"
    )
    return f"not applicable here: {lacks}; {CAMPAIGN}"
