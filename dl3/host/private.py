"""A folder of our own below folders that not everybody may write: EAL takes plugins from no other."""

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dl3.model.fault import Fault


def is_safe(folder: Path) -> bool:
    """Whether we may write there, and neither it nor any folder above lets everybody write."""
    whole = folder.resolve()
    if not whole.is_dir() or not os.access(whole, os.W_OK):
        return False
    return not any(part.stat().st_mode & stat.S_IWOTH for part in (whole, *whole.parents))


def candidates() -> Iterator[Path]:
    """Folders in memory first."""
    yield Path("/run")
    for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    yield Path("/var/lib")


def safe_parent(folders: Iterable[Path], why: str = "DPDK loads no plugin from such a folder") -> Path:
    """The first of the folders that is safe; `error` it has to be, a Fault says where none is."""
    tried = list(folders)
    for folder in tried:
        if is_safe(folder):
            return folder
    names = ", ".join(str(folder) for folder in tried)
    raise Fault(
        f"each of {names} is missing, not ours to write, or open to everybody, and {why}: set XDG_RUNTIME_DIR to one "
        "that only you may write"
    )


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make one and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="dl3-", dir=safe_parent(candidates())) as name:
        yield Path(name)
