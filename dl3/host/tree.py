"""A tree of kernel and configuration files: of this machine, of a folder, or of a record. Nothing here changes a file."""

import gzip
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Protocol

from dl3.host.command import output_of
from dl3.host.remote import remote_sessions_text

LIVE = Path("/")
GZIP = b"\x1f\x8b"
OUTPUTS = "dl3-outputs"  # of a folder that is not the root: outputs of commands
# What no file says. The names are those of the outputs in a record.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "ip4-routes": ("ip", "-json", "-4", "route", "show", "table", "all"),
    "ip6-routes": ("ip", "-json", "-6", "route", "show", "table", "all"),
    "kernel-log": ("dmesg", "--notime"),
}
SESSIONS = "remote-sessions"  # an output, too, but of a search through /proc
Keep = Callable[[str], str]


def whole(text: str) -> str:
    """Keeps everything."""
    return text


class Tree(Protocol):
    """Paths are absolute, like '/proc/cmdline'. What cannot be read is None, or has no names.

    `keep` reduces a text to what is used, so that a record contains nothing else.
    """

    def text(self, path: str, keep: Keep = whole) -> str | None:
        """The contents of a file; those of a file '.gz' are decompressed."""

    def names(self, path: str) -> tuple[str, ...]:
        """The sorted names in a folder."""

    def link(self, path: str) -> str | None:
        """The target of a symbolic link, as written."""

    def has(self, path: str) -> bool:
        """Whether there is a file, a folder or a link, even one whose target is missing."""

    def output(self, name: str, keep: Keep = whole) -> str | None:
        """The output of a command of COMMANDS, or SESSIONS."""


def decoded(data: bytes, path: str) -> str:
    """Contents as text."""
    if path.endswith(".gz") and data.startswith(GZIP):
        data = gzip.decompress(data)
    return data.decode("utf-8", errors="replace")


@lru_cache(1 << 16)
def is_inside(root: str, path: str) -> bool:
    """Whether a path leads to something below a folder. Remembered: the links of a tree do not change so much."""
    real = os.path.realpath(path)
    return f"{real}/".startswith(f"{os.path.realpath(root)}/")


@dataclass(frozen=True)
class FolderTree:
    """The files below a folder; with the root, those of this machine."""

    root: Path = LIVE

    def place(self, path: str) -> Path | None:
        """Where a path is; None if a link leads out of the folder."""
        root = str(self.root)
        found = os.path.join(root, path.lstrip("/"))  # noqa: PTH118 - thousands of paths, and pathlib is slow
        if root != "/" and not is_inside(root, found.rpartition("/")[0]):
            return None
        return Path(found)

    def text(self, path: str, keep: Keep = whole) -> str | None:
        """See Tree."""
        found = self.place(path)
        if found is None or (self.root != LIVE and found.is_symlink() and not is_inside(str(self.root), str(found))):
            return None
        try:
            return keep(decoded(found.read_bytes(), path))
        except (OSError, EOFError):
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """See Tree."""
        found = self.place(path)
        try:
            return tuple(sorted(one.name for one in found.iterdir())) if found else ()
        except OSError:
            return ()

    def link(self, path: str) -> str | None:
        """See Tree."""
        found = self.place(path)
        try:
            return str(found.readlink()) if found else None
        except OSError:
            return None

    def has(self, path: str) -> bool:
        """See Tree."""
        found = self.place(path)
        return found is not None and os.path.lexists(found)

    def output(self, name: str, keep: Keep = whole) -> str | None:
        """See Tree."""
        if self.root != LIVE:
            return self.text(f"/{OUTPUTS}/{name}", keep)
        found = remote_sessions_text() if name == SESSIONS else output_of(COMMANDS[name])
        return None if found is None else keep(found)


@dataclass(frozen=True)
class StoredTree:
    """Files in memory: those of a record, or those that a test made up."""

    texts: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()  # that have no other entry
    children: Mapping[str, set[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "children", children_of((*self.texts, *self.links, *self.folders)))

    def text(self, path: str, keep: Keep = whole) -> str | None:
        """See Tree."""
        found = self.texts.get(path)
        return None if found is None else keep(found)

    def names(self, path: str) -> tuple[str, ...]:
        """See Tree."""
        return tuple(sorted(self.children.get(path, ())))

    def link(self, path: str) -> str | None:
        """See Tree."""
        return self.links.get(path)

    def has(self, path: str) -> bool:
        """See Tree."""
        return path in self.texts or path in self.links or path in self.folders or path in self.children

    def output(self, name: str, keep: Keep = whole) -> str | None:
        """See Tree."""
        return self.text(f"/{OUTPUTS}/{name}", keep)


def children_of(paths: Iterable[str]) -> dict[str, set[str]]:
    """The names in each folder."""
    found: dict[str, set[str]] = {}
    for path in paths:
        parent = path
        while parent != "/":
            head, _, name = parent.rpartition("/")
            parent = head or "/"
            names = found.setdefault(parent, set())
            if name in names:
                break  # and so are all above it
            names.add(name)
    return found


def word(tree: Tree, path: str) -> str | None:
    """The contents of a small file, without the end of the line."""
    found = tree.text(path)
    return None if found is None else found.strip()


def number(tree: Tree, path: str) -> int | None:
    """The decimal number in a file."""
    found = word(tree, path)
    try:
        return int(found) if found is not None else None
    except ValueError:
        return None


def last_part(target: str | None) -> str | None:
    """The name of what a link leads to."""
    return PurePosixPath(target).name if target else None
