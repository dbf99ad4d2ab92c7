"""Paths, and a private folder for files needed during a measurement."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from dl3.host.private import private_folder
from dl3.host.root import need_root
from dl3.model.fault import Fault

TOP = Path(__file__).resolve().parent.parent.parent
BUILD = TOP / "build"
PLUGIN = BUILD / "src" / "onecore" / "onecore.so"
DL3D = BUILD / "src" / "dl3d"
TABLES = BUILD / "tables"
PEERS = BUILD / "peers"


@dataclass(frozen=True)
class Workplace:
    """A folder in memory, writable only for us, that contains the plugin."""

    folder: Path
    plugin: Path
    numbers: Iterator[int] = field(default_factory=count)

    def next_number(self) -> int:
        """For unique file names."""
        return next(self.numbers)


def built(path: Path, maker: str) -> Path:
    """The path; Fault with the build command if it does not exist."""
    if not path.exists():
        raise Fault(f"{path} is not built: run '{maker}' first")
    return path


@contextmanager
def workplace() -> Iterator[Workplace]:
    """Create the folder and remove it at the end; EAL may not accept a plugin from the clone's location."""
    need_root("a measurement on one core")
    source = built(PLUGIN, "make")
    with private_folder() as folder:
        yield Workplace(folder, Path(shutil.copy(source, folder / "onecore.so")))
