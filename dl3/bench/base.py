"""Another commit of this repository, checked out and built below build/, so that its dl3d can be measured."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dl3.bench.workplace import BUILD, TOP
from dl3.model.fault import Fault, UsageFault

SHORT = 10  # length of abbreviated commit hashes
LAST_LINES = 12  # of a failed command's output
TARGETS = ("src/dl3d", "src/dl3gen")
COPIED = ("buildtype", "optimization", "debug", "b_lto", "b_ndebug", "b_pgo", "b_sanitize", "march")
INSTALL = "run tools/install-deps build"


@dataclass(frozen=True)
class Base:
    """A commit and its build location."""

    revision: str  # as given by the user
    commit: str

    @property
    def short(self) -> str:
        """Abbreviated hash."""
        return self.commit[:SHORT]

    @property
    def name(self) -> str:
        """Name of its folder below build/."""
        return f"base-{self.short}"

    @property
    def folder(self) -> Path:
        """Its worktree."""
        return BUILD / self.name

    @property
    def build(self) -> Path:
        """Its meson build folder."""
        return self.folder / "build"

    @property
    def dl3d(self) -> Path:
        """The program to measure."""
        return self.build / "src" / "dl3d"


def run(command: Sequence[str | Path]) -> str:
    """Standard output of a command; Fault with the end of its output if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Fault(f"{command[0]} is not installed: {INSTALL}") from error
    if done.returncode:
        words = "\n".join((done.stdout + done.stderr).splitlines()[-LAST_LINES:])
        raise Fault(f"'{' '.join(map(str, command))[:200]}' failed:\n{words}")
    return done.stdout


def git(*arguments: str | Path, folder: Path | None = None) -> str:
    """Output of git in a folder (default TOP), without the final newline."""
    return run(["git", "-C", folder or TOP, *arguments]).rstrip("\n")


def find_base(revision: str) -> Base:
    """The commit of a revision; UsageFault if it does not exist."""
    if not (TOP / ".git").exists():
        raise UsageFault(f"{TOP} is not a git clone, so there is no {revision} to compare with: use a clone")
    try:
        commit = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except Fault as fault:
        raise UsageFault(f"unknown revision '{revision}': name a commit, a branch or a tag of this clone") from fault
    return Base(revision, commit.splitlines()[-1])


def options_of(build: Path) -> dict[str, Any]:
    """Meson options of a build that affect the compiled code."""
    file = build / "meson-info" / "intro-buildoptions.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Fault(f"{build} is not set up: run 'make' first") from error
    return {option["name"]: option["value"] for option in found if option["name"] in COPIED}


def arguments_of(options: Mapping[str, Any]) -> list[str]:
    """The same options as arguments of 'meson setup'."""
    words = {True: "true", False: "false"}
    return [f"-D{name}={words.get(value, value)}" for name, value in sorted(options.items())]


def is_checked_out(base: Base) -> bool:
    """Whether its worktree is complete and unmodified."""
    if not (base.folder / ".git").is_file():
        return False
    try:
        commit = git("rev-parse", "HEAD", folder=base.folder)
        return commit == base.commit and not git("status", "--porcelain", folder=base.folder)
    except Fault:
        return False


def remove(base: Base) -> None:
    """Remove the worktree, even if incomplete."""
    shutil.rmtree(base.folder, ignore_errors=True)
    git("worktree", "prune")


def check_out(base: Base) -> None:
    """Create the worktree if necessary."""
    if not is_checked_out(base):
        remove(base)
        git("worktree", "add", "--force", "--detach", base.folder, base.commit)


def is_set_up(base: Base, options: Mapping[str, Any]) -> bool:
    """Whether its build is configured with these options."""
    return (base.build / "build.ninja").exists() and options_of(base.build) == options


def build_base(base: Base) -> None:
    """Build its dl3d and dl3gen with the options of build/; fast if already built.

    On failure or interrupt the worktree is removed.
    """
    options = options_of(BUILD)
    try:
        check_out(base)
        if not is_set_up(base, options):
            shutil.rmtree(base.build, ignore_errors=True)
            run(["meson", "setup", *arguments_of(options), "-Dtests=disabled", base.build, base.folder])
        run(["ninja", "-C", base.build, *TARGETS])
    except BaseException:
        remove(base)
        raise
