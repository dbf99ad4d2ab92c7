"""A private folder in a location that is not world-writable; EAL loads plugins from no other."""

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dl3.model.fault import Fault


def is_safe(folder: Path) -> bool:
    """Whether the folder is writable for us and neither it nor any parent is world-writable."""
    whole = folder.resolve()
    if not whole.is_dir() or not os.access(whole, os.W_OK):
        return False
    return not any(part.stat().st_mode & stat.S_IWOTH for part in (whole, *whole.parents))


def candidates() -> Iterator[Path]:
    """Candidate folders, those in memory first."""
    yield Path("/run")
    for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    yield Path("/var/lib")


def safe_parent(folders: Iterable[Path], why: str = "DPDK loads no plugin from such a folder") -> Path:
    """The first safe folder; otherwise a Fault, which says `why` it must be safe."""
    tried = list(folders)
    for folder in tried:
        if is_safe(folder):
            return folder
    names = ", ".join(str(folder) for folder in tried)
    raise Fault(
        f"each of {names} is missing, not writable, or world-writable, and {why}: set XDG_RUNTIME_DIR to one "
        "that only you may write"
    )


@contextmanager
def private_folder() -> Iterator[Path]:
    """Create a private folder and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="dl3-", dir=safe_parent(candidates())) as name:
        yield Path(name)
