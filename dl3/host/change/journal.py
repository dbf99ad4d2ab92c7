"""The journal of an applied plan: what was there before, on disk before the first change."""

import base64
import os
from datetime import UTC, datetime
from typing import Literal

from pydantic import ValidationError

from dl3.host.change.root import Owner, Root
from dl3.host.tree import word
from dl3.host.tuning.plan import Tuning
from dl3.host.tuning.step import AnyStep, FileStep, LiveStep
from dl3.model.fault import Fault
from dl3.model.noun import Noun

FOLDER = "/var/lib/dl3-host"
PATH = f"{FOLDER}/journal.json"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Saved(Noun):
    """A file as it was. `content`: base64; None if there was none."""

    path: str
    content: str | None
    mode: int = 0
    uid: int = 0
    gid: int = 0
    folders: tuple[str, ...] = ()  # that did not exist

    @property
    def data(self) -> bytes:
        """Its contents."""
        return base64.b64decode(self.content or "")

    @property
    def owner(self) -> Owner:
        """Its mode and owner."""
        return Owner(self.mode, self.uid, self.gid)


class TrialBoot(Noun):
    """The boot that tries the kernel parameters. `boot`: in which the plan was applied. The paths are of files that exist
    until it is settled, those that were written first come first. `said`: why it failed.
    """

    state: Literal["armed", "keeping", "kept", "failed"]
    mark: str
    boot: str
    boot_paths: tuple[str, ...]
    unit_paths: tuple[str, ...]
    said: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.unit_paths, *self.boot_paths)


class Journal(Noun):
    """One apply. `boot`: in which. `folders`: of the journal itself, which did not exist. `undone`: numbers of steps that
    were put back.
    """

    state: Literal["applying", "applied", "undoing", "reverting", "failing"]
    at: str
    boot: str = ""
    tuning: Tuning
    saved: tuple[Saved, ...]
    folders: tuple[str, ...]
    is_confirmed: bool
    undone: tuple[int, ...] = ()
    trial: TrialBoot | None = None

    @property
    def numbers(self) -> frozenset[int]:
        """Numbers of the steps that are in place."""
        return frozenset(range(len(self.tuning.steps))) - set(self.undone)

    @property
    def waits(self) -> bool:
        """Whether steps are undone by themselves unless they are confirmed."""
        return not self.is_confirmed and bool(self.tuning.unconfirmed & self.numbers)

    def is_over(self, step: AnyStep, boot: str) -> bool:
        """Whether a boot has ended what a step did: interrupts got new numbers."""
        return isinstance(step, LiveStep) and step.path.startswith("/proc/irq/") and self.boot != boot

    def saved_file(self, path: str) -> Saved:
        """A file as it was."""
        return next(one for one in self.saved if one.path == path)


def boot_of(root: Root) -> str:
    """Which boot this is."""
    return word(root.tree, BOOT_ID) or ""


def save(root: Root, path: str) -> Saved:
    """A file as it is."""
    data, folders = root.read(path), root.missing_folders(path)
    if data is None:
        return Saved(path=path, content=None, folders=folders)
    owner = root.owner(path)
    content = base64.b64encode(data).decode("ascii")
    return Saved(path=path, content=content, mode=owner.mode, uid=owner.uid, gid=owner.gid)


def new_journal(root: Root, tuning: Tuning, trial: TrialBoot | None) -> Journal:
    """The journal of an apply that begins."""
    paths = [step.path for step in tuning.steps if isinstance(step, FileStep)]
    return Journal(
        state="applying",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        boot=boot_of(root),
        tuning=tuning,
        saved=tuple(save(root, path) for path in (*paths, *(trial.paths if trial else ()))),
        folders=root.missing_folders(PATH),
        is_confirmed=not tuning.unconfirmed,
        trial=trial,
    )


def write(root: Root, journal: Journal) -> None:
    """Bring the journal to disk."""
    root.make_folders(PATH)
    root.replace(PATH, journal.model_dump_json(indent=1).encode(), Owner(0o600, os.geteuid(), os.getegid()))


def read(root: Root) -> Journal | None:
    """The journal of what is applied, or was interrupted."""
    data = root.read(PATH)
    if data is None:
        return None
    try:
        return Journal.model_validate_json(data)
    except ValidationError as error:
        raise Fault(
            f"{PATH} is damaged ({error.errors()[0]['msg']}): nothing is changed; restore it from a backup"
        ) from error


def remove(root: Root, folders: tuple[str, ...]) -> None:
    """Remove the journal, and its folders if they were not there before."""
    root.remove(PATH)
    root.remove_folders(folders)
