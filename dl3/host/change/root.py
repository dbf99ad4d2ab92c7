"""The files of a machine that is changed, below a root folder. All writes of 'dl3 host' are here."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from dl3.host.command import run
from dl3.host.tree import FolderTree
from dl3.model.fault import Fault, UsageFault

NEW = ".dl3-new"  # ends the name of a file that is about to replace another


@dataclass(frozen=True)
class Owner:
    """Mode and owner of a file."""

    mode: int = 0o644
    uid: int = 0
    gid: int = 0


def no_command(command: Sequence[str]) -> None:
    """Below another root than '/', commands would change this machine."""
    del command


def for_machine(command: Sequence[str]) -> None:
    """Commands of this machine."""
    run(command)


@dataclass(frozen=True)
class Root:
    """`passing` is called before each single change, so that tests can stop between any two."""

    folder: Path = Path("/")
    execute: Callable[[Sequence[str]], None] = field(default=for_machine)
    passing: Callable[[str], None] = field(default=lambda _: None)

    @property
    def tree(self) -> FolderTree:
        """The same files, for reading."""
        return FolderTree(self.folder)

    def place(self, path: str) -> Path:
        """Where a path is."""
        found = self.tree.place(path)
        if found is None:
            raise Fault(f"{path} leads out of {self.folder}")
        return found

    def read(self, path: str) -> bytes | None:
        """The contents of a file; None if there is none."""
        try:
            return self.place(path).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Fault(f"cannot read {path}: {error.strerror}") from error

    def owner(self, path: str) -> Owner:
        """Mode and owner of a file that exists."""
        found = self.place(path).stat()
        return Owner(found.st_mode & 0o7777, found.st_uid, found.st_gid)

    def make_folders(self, path: str) -> tuple[str, ...]:
        """Create the folders of a file; returns those that were missing, the deepest last."""
        missing = self.missing_folders(path)
        for one in missing:
            self.passing(f"mkdir {one}")
            self.place(one).mkdir(mode=0o755, exist_ok=True)
            self.sync(PurePosixPath(one).parent)
        return missing

    def missing_folders(self, path: str) -> tuple[str, ...]:
        """The folders of a file that do not exist, the deepest last."""
        parents = [str(one) for one in PurePosixPath(path).parents if one.name]
        return tuple(reversed([one for one in parents if not self.place(one).exists()]))

    def remove_folders(self, paths: Sequence[str]) -> None:
        """Remove folders that are empty, the last one first."""
        for one in reversed(paths):
            self.passing(f"rmdir {one}")
            try:
                self.place(one).rmdir()
            except OSError:
                continue  # somebody else uses it by now, or it is gone

    def sync(self, folder: PurePosixPath) -> None:
        """Bring the names in a folder to disk."""
        descriptor = os.open(self.place(str(folder)) if folder.name else self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, path: str, data: bytes, owner: Owner | None = None) -> None:
        """Replace a file at once: a crash leaves the old one or the new one."""
        file, keeper = self.place(path), owner or Owner(uid=os.geteuid(), gid=os.getegid())
        new = file.with_name(f".{file.name}{NEW}")
        self.passing(f"write {new.name}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, data)
            os.fchmod(descriptor, keeper.mode)
            os.fchown(descriptor, keeper.uid, keeper.gid)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self.passing(f"rename {path}")
        new.rename(file)
        self.sync(PurePosixPath(path).parent)

    def remove(self, path: str) -> None:
        """Remove a file, and what an interrupted replace() left."""
        file = self.place(path)
        for one in (file.with_name(f".{file.name}{NEW}"), file):
            if one.exists():
                self.passing(f"unlink {one.name}")
                one.unlink()
                self.sync(PurePosixPath(path).parent)

    def remove_new(self, path: str) -> None:
        """Remove what an interrupted replace() left."""
        file = self.place(path)
        file.with_name(f".{file.name}{NEW}").unlink(missing_ok=True)

    def poke(self, path: str, value: str) -> None:
        """Write a value to a file of the kernel."""
        self.passing(f"poke {path}")
        try:
            descriptor = os.open(self.place(path), os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(descriptor, f"{value}\n".encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise Fault(f"the kernel refuses '{value}' for {path}: {error.strerror}") from error

    def run(self, command: Sequence[str]) -> None:
        """Run a command of the machine."""
        self.passing(f"run {command[0]}")
        self.execute(command)


def root_at(folder: Path) -> Root:
    """This machine, or a folder, in which commands are not run."""
    if not folder.is_dir():
        raise UsageFault(f"there is no folder {folder}: name one that has the files of a machine, or leave out --root")
    return Root() if folder == Path("/") else Root(folder, no_command)
