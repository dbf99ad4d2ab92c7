"""Records of a machine: an archive with exactly the files that were read, scrubbed. Reading one gives a tree again."""

import io
import secrets
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from dl3.host.facts.read import read
from dl3.host.scrub import Scrubber
from dl3.host.tree import OUTPUTS, FolderTree, Keep, StoredTree, Tree, whole
from dl3.model.fault import Fault, UsageFault

MARK = "dl3-host-record"  # the first file of a record
VERSION = "1\n"
MOST_BYTES = 256 << 20
KEY_BYTES = 32
SOCKETS = "/proc/net/tcp"


@dataclass(frozen=True)
class RecordingTree:
    """Passes on what another tree says, and keeps it."""

    inner: Tree
    texts: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    def text(self, path: str, keep: Keep = whole) -> str | None:
        """See Tree."""
        found = self.inner.text(path, keep)
        if found is not None:
            self.texts[path] = found
        return found

    def names(self, path: str) -> tuple[str, ...]:
        """See Tree."""
        found = self.inner.names(path)
        self.folders.update(f"{path}/{name}" for name in found)
        return found

    def link(self, path: str) -> str | None:
        """See Tree."""
        found = self.inner.link(path)
        if found is not None:
            self.links[path] = found
        return found

    def has(self, path: str) -> bool:
        """See Tree."""
        found = self.inner.has(path)
        if found:
            self.folders.add(path)
        return found

    def output(self, name: str, keep: Keep = whole) -> str | None:
        """See Tree."""
        found = self.inner.output(name, keep)
        if found is not None:
            self.texts[f"/{OUTPUTS}/{name}"] = found
        return found

    def stored(self) -> StoredTree:
        """What was read."""
        return StoredTree(dict(self.texts), dict(self.links), frozenset(self.folders))


def host_names(tree: Tree) -> tuple[str, ...]:
    """Host names of the machine, the longest first."""
    found = set()
    for path in ("/proc/sys/kernel/hostname", "/etc/hostname"):
        name = (tree.text(path) or "").strip()
        found |= {name, name.partition(".")[0]} - {"", "localhost"}
    return tuple(sorted(found, key=lambda name: (-len(name), name)))


def scrubbed(tree: StoredTree, scrubber: Scrubber) -> StoredTree:
    """A tree without what identifies the machine."""
    texts = {
        scrubber.text(path): scrubber.sockets(text) if path.startswith(SOCKETS) else scrubber.text(text)
        for path, text in tree.texts.items()
    }
    links = {scrubber.text(path): scrubber.text(target) for path, target in tree.links.items()}
    return StoredTree(texts, links, frozenset(scrubber.text(path) for path in tree.folders))


def record(tree: Tree) -> StoredTree:
    """What the facts of a machine are read from, scrubbed."""
    recording = RecordingTree(tree)
    read(recording)
    return scrubbed(recording.stored(), Scrubber(secrets.token_bytes(KEY_BYTES), host_names(tree)))


def members(tree: StoredTree) -> list[tuple[tarfile.TarInfo, bytes]]:
    """The files of an archive. Times and owners are left out."""
    found = []
    for path in sorted({*tree.texts, *tree.links, *tree.folders}):
        info, data = tarfile.TarInfo(path.lstrip("/")), b""
        if path in tree.texts:
            data = tree.texts[path].encode()
            info.size = len(data)
        elif path in tree.links:
            info.type, info.linkname = tarfile.SYMTYPE, tree.links[path]
        else:
            info.type, info.mode = tarfile.DIRTYPE, 0o755
        found.append((info, data))
    return found


def write(tree: StoredTree, path: Path) -> int:
    """Write an archive; a file that exists is not replaced. Returns the number of files in it."""
    found = members(tree)
    mark = tarfile.TarInfo(MARK)
    mark.size = len(VERSION)
    try:
        with path.open("xb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            archive.addfile(mark, io.BytesIO(VERSION.encode()))
            for info, data in found:
                archive.addfile(info, io.BytesIO(data))
    except FileExistsError as error:
        raise UsageFault(f"{path} exists: choose another name for the record") from error
    except OSError as error:
        raise Fault(f"cannot write {path}: {error.strerror}") from error
    return sum(info.isreg() for info, _ in found)


def stored_in(archive: tarfile.TarFile, path: Path) -> StoredTree:
    """The files of an open archive; nothing is unpacked into a folder."""
    texts, links, folders, n_bytes = {}, {}, set(), 0
    first = archive.next()
    mark = archive.extractfile(first) if first and first.name == MARK else None
    if not mark or mark.read() != VERSION.encode():
        raise UsageFault(f"{path} is no record of this version: make one with 'dl3 host record'")
    for info in archive:
        name, file = f"/{info.name}", archive.extractfile(info) if info.isreg() else None
        n_bytes += info.size
        if n_bytes > MOST_BYTES:
            raise UsageFault(f"{path} is larger than any record: more than {MOST_BYTES >> 20} MiB")
        if file:
            texts[name] = file.read().decode("utf-8", errors="replace")
        elif info.issym():
            links[name] = info.linkname
        elif info.isdir():
            folders.add(name)
    return StoredTree(texts, links, frozenset(folders))


def open_record(path: Path) -> Tree:
    """The tree of a record, or of a folder with one."""
    if path.is_dir():
        return FolderTree(path)
    try:
        with tarfile.open(path) as archive:
            return stored_in(archive, path)
    except (tarfile.TarError, EOFError) as error:
        raise UsageFault(f"{path} is no archive: make one with 'dl3 host record'") from error
    except OSError as error:
        raise UsageFault(f"cannot read {path}: {error.strerror or 'damaged'}") from error
