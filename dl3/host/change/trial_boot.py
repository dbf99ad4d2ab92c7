"""The trial boot: new kernel parameters are used in one boot, and kept if they have the wanted effect there.

GRUB: its menu gets the words from a variable, which a script of ours sets if it finds a mark in a file of ours and could
clear it. So they are used once, whatever happens then; and never where GRUB cannot write.
systemd-boot: an entry of ours, which the firmware's variables choose for one boot.
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dl3.host.change import journal as journals
from dl3.host.change.journal import Journal, TrialBoot
from dl3.host.change.root import Owner, Root
from dl3.host.change.steps import TRIAL_TEXT, Thens, do
from dl3.host.facts.boot import GRUB_MENUS, LOADERS
from dl3.host.facts.kernel import Kernel
from dl3.host.facts.read import Facts
from dl3.host.tree import word
from dl3.host.tuning.names import GRUB
from dl3.host.tuning.parameters import words_in
from dl3.host.tuning.plan import Tuning
from dl3.host.tuning.step import HEAD, FileStep
from dl3.model.fault import Fault

TOP = Path(__file__).resolve().parents[3]
PANIC_SECONDS = 10  # then a kernel that panicked boots again
UNIT = "/etc/systemd/system/dl3-host-trial.service"
WANTED = "/etc/systemd/system/multi-user.target.d/90-dl3-trial.conf"
GRUB_SCRIPT = "/etc/grub.d/09_dl3"
GRUB_MARK = "dl3.env"  # beside GRUB's menu
ENTRY = "dl3-trial.conf"
VARIABLE, WORD = "dl3_trial", "dl3.trial"  # of GRUB, and of the kernel, which takes it for a module's and is silent
SIZE = 1024  # of a file that GRUB writes to: it never changes its size


@dataclass(frozen=True)
class TrialFile:
    """A file that exists as long as the trial is pending."""

    path: str
    text: str
    mode: int = 0o644


def mark_of(tuning: Tuning) -> str:
    """What tells the trial of these words from others."""
    return hashlib.sha256(tuning.tried_step.after.encode()).hexdigest()[:8]


def trial_words(mark: str) -> tuple[str, ...]:
    """Words of the trial boot only."""
    return f"panic={PANIC_SECONDS}", f"{WORD}={mark}"


def unit_files() -> Iterator[TrialFile]:
    """What looks after each boot whether it was the trial."""
    yield TrialFile(
        UNIT,
        f"{HEAD}[Unit]\nDescription=Keep the kernel parameters of dl3 host, or go back to those before\n"
        f"After=multi-user.target\nConditionPathExists={journals.PATH}\n"
        f'[Service]\nType=oneshot\nEnvironment="PYTHONPATH={TOP}" PYTHONDONTWRITEBYTECODE=1\n'
        f'ExecStart="{sys.executable}" -m dl3 host confirm --booted\n',
    )
    yield TrialFile(WANTED, f"{HEAD}[Unit]\nWants={PurePosixPath(UNIT).name}\n")


def grub_folder(root: Root) -> str:
    """Where GRUB finds its menu."""
    menu = next((one for one in GRUB_MENUS if root.tree.has(one)), GRUB_MENUS[0])
    return str(PurePosixPath(menu).parent)


def block_of(mark: str) -> str:
    """A file that GRUB can write to."""
    return f"# GRUB Environment Block\n{VARIABLE}={mark}\n".ljust(SIZE, "#")


def grub_script(step: FileStep, mark: str) -> str:
    """What puts the words into GRUB's menu. The mark is read again: only what is on the disk counts."""
    new = " ".join((*words_in(step.after), *trial_words(mark)))
    file = f"$prefix/{GRUB_MARK}"
    return f"""#!/bin/sh
{HEAD}cat <<'END'
set dl3_words="{" ".join(words_in(step.before or ""))}"
if [ -s {file} ]; then
  load_env --file {file} {VARIABLE}
  if [ "${{{VARIABLE}}}" = "{mark}" ]; then
    set {VARIABLE}=
    save_env --file {file} {VARIABLE}
    load_env --file {file} {VARIABLE}
    if [ -z "${{{VARIABLE}}}" ]; then
      set dl3_words="{new}"
    fi
  fi
fi
export dl3_words
END
"""


def entry_file(root: Root, step: FileStep, mark: str) -> TrialFile:
    """An entry of systemd-boot like that of the running kernel, with the words."""
    base = next((PurePosixPath(one).parent for one in LOADERS if root.tree.has(one)), PurePosixPath("/boot/loader"))
    release, folder = word(root.tree, "/proc/sys/kernel/osrelease") or "unknown", f"{base}/entries"
    for name in root.tree.names(folder):
        lines = [one.split(maxsplit=1) for one in (root.tree.text(f"{folder}/{name}") or "").splitlines()]
        if name == ENTRY or ["version", release] not in lines:
            continue
        kept = [" ".join(one) for one in lines if one and one[0] not in ("title", "options", "sort-key")]
        options = " ".join((*step.after.split(), *trial_words(mark)))
        text = "\n".join((f"title Linux {release}, trial of dl3", *kept, f"options {options}"))
        return TrialFile(f"{folder}/{ENTRY}", f"{text}\n")
    raise Fault(f"systemd-boot has no entry for Linux {release} in {folder}, so there can be no trial boot: add one")


def boot_files(root: Root, step: FileStep, mark: str) -> tuple[TrialFile, ...]:
    """Files of the bootloader; that which lets it try the words is the last one."""
    if step.path != GRUB:
        return (entry_file(root, step, mark),)
    script = TrialFile(GRUB_SCRIPT, grub_script(step, mark), 0o755)
    return script, TrialFile(f"{grub_folder(root)}/{GRUB_MARK}", block_of(mark))


def new_trial(root: Root, tuning: Tuning, facts: Facts) -> TrialBoot | None:
    """The trial of a plan that is about to be applied; None if it has no kernel parameters."""
    if not tuning.tried:
        return None
    mark = mark_of(tuning)
    files = boot_files(root, tuning.tried_step, mark)
    units = tuple(unit_files()) if facts.system.runs_systemd else ()
    return TrialBoot(
        state="armed",
        mark=mark,
        boot=journals.boot_of(root),
        boot_paths=tuple(one.path for one in files),
        unit_paths=tuple(one.path for one in units),
    )


def write(root: Root, file: TrialFile) -> None:
    """One file."""
    root.make_folders(file.path)
    root.replace(file.path, file.text.encode(), Owner(file.mode, os.geteuid(), os.getegid()))


def watch(root: Root, trial: TrialBoot) -> None:
    """Let systemd look after the next boots, from before the first change: a boot may come at any time."""
    for file in unit_files() if trial.unit_paths else ():
        write(root, file)


def prepare(root: Root, journal: Journal, thens: Thens) -> None:
    """Teach the bootloader the words. They are not used yet."""
    step = journal.tuning.tried_step
    if step.path == GRUB:
        script, _ = boot_files(root, step, mark_of(journal.tuning))
        write(root, script)
        root.make_folders(GRUB)
        root.replace(GRUB, TRIAL_TEXT.encode())
        root.run(thens.command(step.then))


def arm(root: Root, journal: Journal) -> None:
    """Let the next boot use the words. The last change of an apply."""
    step = journal.tuning.tried_step
    write(root, boot_files(root, step, mark_of(journal.tuning))[-1])
    if step.path != GRUB:
        root.run(("bootctl", "set-oneshot", ENTRY))


def remove(root: Root, journal: Journal, paths: tuple[str, ...]) -> None:
    """Files of the trial as they were before, the last one first."""
    for path in reversed(paths):
        saved = journal.saved_file(path)
        if not root.missing_folders(path):
            root.remove_new(path)
        if saved.content is None:
            root.remove(path)
        else:
            root.replace(path, saved.data, saved.owner)
        root.remove_folders(saved.folders)


def disarm(root: Root, journal: Journal) -> None:
    """From now on, no boot uses the words. What follows brings the bootloader's menu back."""
    if not journal.trial or journal.trial.state == "kept":
        return
    entries = [path for path in journal.trial.boot_paths if path.endswith(f"/{ENTRY}") and root.tree.has(path)]
    remove(root, journal, journal.trial.boot_paths)
    if entries:
        root.run(("bootctl", "set-oneshot", ""))


def unwatch(root: Root, journal: Journal) -> None:
    """systemd need not look any more."""
    if journal.trial and journal.trial.state != "kept":
        remove(root, journal, journal.trial.unit_paths)


def is_running(trial: TrialBoot, kernel: Kernel) -> bool:
    """Whether this boot is the trial."""
    return kernel.value(WORD) == trial.mark


def is_marked(root: Root, trial: TrialBoot) -> bool:
    """Whether GRUB did not take the mark although it could have."""
    return any(f"{VARIABLE}={trial.mark}\n" in (root.tree.text(path) or "") for path in trial.boot_paths[-1:])


def with_state(journal: Journal, state: str, said: str = "") -> Journal:
    """The journal with another state of the trial."""
    return journal.model_copy(
        update={"trial": journal.trial and journal.trial.model_copy(update={"state": state, "said": said})}
    )


def keep(root: Root, journal: Journal, thens: Thens) -> Journal:
    """Make the words permanent. May be interrupted and called again."""
    journal = with_state(journal, "keeping")
    journals.write(root, journal)
    disarm(root, journal)
    do(root, journal.tuning.tried_step, thens)
    unwatch(root, journal)
    journal = with_state(journal, "kept")
    journals.write(root, journal)
    return journal
