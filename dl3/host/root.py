"""Rejects commands that need root before anything is started."""

import os

from dl3.model.fault import UsageFault


def need_root(what: str) -> None:
    """UsageFault unless the effective user is root; the message starts with `what`."""
    if os.geteuid() != 0:
        raise UsageFault(f"{what} needs root: run the command with sudo")
