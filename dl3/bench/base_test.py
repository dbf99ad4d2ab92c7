"""Worktree and build of another commit, in a temporary clone; meson and ninja are not run."""

import json
import subprocess
from pathlib import Path

import pytest

from dl3.bench import base
from dl3.bench.base import Base, arguments_of, build_base, check_out, find_base, is_checked_out, options_of, remove, run
from dl3.model.fault import Fault, UsageFault


def _git(top: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.net", "-c", "core.hooksPath=/dev/null")
    command = ["git", "-C", str(top), *settings, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits; the newer one adds a second file."""
    _git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitignore").write_text("/build*/\n")
    for name in ("first", "second"):
        (tmp_path / name).touch()
        _git(tmp_path, "add", "--all")
        _git(tmp_path, "commit", "--quiet", "--message", name)
    monkeypatch.setattr(base, "TOP", tmp_path)
    monkeypatch.setattr(base, "BUILD", tmp_path / "build")
    return tmp_path


def _set_up(build: Path, **options: object) -> None:
    folder = build / "meson-info"
    folder.mkdir(parents=True)
    values = [{"name": name, "value": value} for name, value in options.items()]
    (folder / "intro-buildoptions.json").write_text(json.dumps(values))


def _worktrees(clone: Path) -> int:
    return len(_git(clone, "worktree", "list").splitlines())


def finds_the_commit_that_a_revision_names(clone: Path) -> None:
    found = find_base("HEAD~1")
    assert found.commit == _git(clone, "rev-parse", "HEAD~1")
    assert found.dl3d == clone / "build" / f"base-{found.commit[:10]}" / "build" / "src" / "dl3d"


@pytest.mark.parametrize("revision", ["nonsense", "HEAD~99", "", "-x"])
def refuses_an_unknown_revision_in_a_sentence(revision: str, clone: Path) -> None:
    assert clone.exists()
    with pytest.raises(UsageFault, match=f"^unknown revision '{revision}': name a commit, a branch or a tag"):
        find_base(revision)


def refuses_a_folder_without_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "TOP", tmp_path)
    with pytest.raises(UsageFault, match="is not a git clone"):
        find_base("HEAD")


def checks_out_the_commit_once_and_again_when_it_was_changed(clone: Path) -> None:
    found = find_base("HEAD~1")
    assert not is_checked_out(found)
    check_out(found)
    assert is_checked_out(found)
    assert (found.folder / "first").exists()
    assert not (found.folder / "second").exists()
    check_out(found)
    (found.folder / "second").touch()
    assert not is_checked_out(found)
    check_out(found)
    assert is_checked_out(found)
    assert _worktrees(clone) == 2


def checks_out_again_after_the_build_folder_was_removed(clone: Path) -> None:
    found = find_base("HEAD")
    check_out(found)
    subprocess.run(["rm", "-rf", clone / "build"], check=True)
    check_out(found)
    assert is_checked_out(found)
    remove(found)
    assert _worktrees(clone) == 1


def leaves_no_worktree_behind_when_the_build_fails(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_up(clone / "build", march="native")
    found, real = find_base("HEAD~1"), base.run

    def without_meson(command: list[str]) -> str:
        return real(["false"] if command[0] == "meson" else command)

    monkeypatch.setattr(base, "run", without_meson)
    with pytest.raises(Fault, match="'false' failed"):
        build_base(found)
    assert not found.folder.exists()
    assert _worktrees(clone) == 1


def builds_with_the_options_of_our_build(tmp_path: Path) -> None:
    _set_up(tmp_path, march="corei7", b_lto=True, optimization="3", tests="auto")
    assert options_of(tmp_path) == {"march": "corei7", "b_lto": True, "optimization": "3"}
    assert arguments_of(options_of(tmp_path)) == ["-Db_lto=true", "-Dmarch=corei7", "-Doptimization=3"]


def reports_when_there_is_no_build(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="is not set up: run 'make' first"):
        options_of(tmp_path)


def names_a_program_that_is_missing_or_fails() -> None:
    with pytest.raises(Fault, match="no-such-program is not installed"):
        run(["no-such-program"])
    with pytest.raises(Fault, match=r"'ls /none' failed:\n.*No such file"):
        run(["ls", "/none"])
    assert run(["echo", "x"]) == "x\n"
    assert Base("HEAD", "0123456789abcdef").short == "0123456789"
