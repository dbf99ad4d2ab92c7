"""What only root may do is refused before anything is started."""

import os

from dl3.model.fault import UsageFault


def need_root(what: str) -> None:
    """UsageFault unless the effective user is root; `what` begins the sentence."""
    if os.geteuid() != 0:
        raise UsageFault(f"{what} needs root: run the command with sudo")
