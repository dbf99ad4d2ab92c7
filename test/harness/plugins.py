"""Test devices where EAL loads plugins from: the build folder, or a copy if that is below a folder like /tmp."""

import atexit
import functools
import shutil
from contextlib import ExitStack
from pathlib import Path

from dl3.host.private import is_safe, private_folder
from harness.wired import BUILD

DEVICES = BUILD / "test" / "device"


@functools.cache
def _folder() -> Path:
    """Removed at exit."""
    if is_safe(DEVICES):
        return DEVICES
    stack = ExitStack()
    atexit.register(stack.close)
    copies = stack.enter_context(private_folder())
    for built in DEVICES.glob("*.so"):
        shutil.copy(built, copies)
    return copies


def plugin(name: str) -> str:
    """The path of a plugin for eal.plugins."""
    return str(_folder() / f"{name}.so")
