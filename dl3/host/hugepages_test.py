"""Limits of huge page reservations, and their release."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from dl3.host import hugepages, loans
from dl3.host.hugepages import available_pages, reserved
from dl3.model.fault import Fault

TOP = Path(__file__).resolve().parents[2]
LAB = """
import sys
from pathlib import Path
from dl3.host import hugepages
hugepages.FOLDER, notes = sys.argv[1], Path(sys.argv[2])
hugepages.folder_of = lambda _: notes
with hugepages.reserved(int(sys.argv[3])):
    print(flush=True)
    input()
"""


class Kernel:
    """Simulates the kernel's files; no page is in use, so all are free."""

    def __init__(self, folder: Path) -> None:
        self.sizes, self.notes = str(folder / "hugepages-{}kB"), folder / "notes"
        self.number = Path(self.sizes.format(2048)) / "nr_hugepages"
        self.number.parent.mkdir()
        self.number.with_name("free_hugepages").symlink_to(self.number)
        self.notes.mkdir()
        self.set(0)

    def set(self, pages: int) -> None:
        """Change the number of pages from outside."""
        self.number.write_text(f"{pages}\n")

    @property
    def pages(self) -> int:
        """Total number of pages."""
        return int(self.number.read_text())

    @contextmanager
    def lab(self, pages: int) -> Iterator[None]:
        """Reserve pages in a separate process that is killed at the end."""
        command = [sys.executable, "-c", LAB, self.sizes, str(self.notes), str(pages)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=TOP, stdin=pipe, stdout=pipe) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline()
                yield
            finally:
                process.kill()
                assert process.wait() == -signal.SIGKILL


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel(tmp_path)
    monkeypatch.setattr(hugepages, "FOLDER", made.sizes)
    monkeypatch.setattr(hugepages, "folder_of", lambda _: made.notes)
    return made


def counts_pages_that_fit_into_available_memory() -> None:
    assert available_pages("MemTotal: 24000000 kB\nMemAvailable:   4097 kB\n") == 2


def counts_no_pages_that_the_kernel_does_not_report() -> None:
    assert available_pages("MemTotal: 24000000 kB\n") == 0


def adds_what_is_missing_and_gives_it_back(kernel: Kernel) -> None:
    kernel.set(3)
    with reserved(10) as added:
        assert (added, kernel.pages) == (7, 10)
        with reserved(10) as more:
            assert (more, kernel.pages) == (0, 10)
        kernel.set(14)  # others may add pages meanwhile
    assert kernel.pages == 7
    assert not list(kernel.notes.iterdir())


def gives_back_what_a_killed_lab_added(kernel: Kernel) -> None:
    kernel.set(3)
    with kernel.lab(10):
        assert kernel.pages == 10
    assert kernel.pages == 10
    with reserved(5) as added:
        assert (added, kernel.pages) == (2, 5)
    assert kernel.pages == 3
    assert not list(kernel.notes.iterdir())


def gives_back_what_a_killed_lab_added_also_when_it_needs_none(kernel: Kernel) -> None:
    kernel.set(3)
    with kernel.lab(10):
        pass
    with reserved(2) as added:
        assert (added, kernel.pages) == (0, 3)


def leaves_a_lab_that_lives_its_pages(kernel: Kernel) -> None:
    with kernel.lab(10), reserved(15) as added:
        assert (added, kernel.pages) == (5, 15)
    with reserved(1):
        assert kernel.pages == 1
    assert kernel.pages == 0


def gives_back_each_killed_labs_pages_once(kernel: Kernel) -> None:
    with kernel.lab(4):
        with kernel.lab(10), kernel.lab(12):
            pass
        with reserved(1):
            assert kernel.pages == 4
        assert kernel.pages == 4


@pytest.mark.parametrize(
    ("note", "left"),
    [("to 3", 3), ("minus 7", 4), ("", 11), ("to 20", 11), ("to", 11), ("minus all", 11), ("plus 7", 11), ("é 7", 11)],
)
def finishes_a_change_that_was_cut_short(kernel: Kernel, note: str, left: int) -> None:
    kernel.set(11)
    (kernel.notes / "1-x").write_text(note)
    with reserved(1):
        assert kernel.pages == left


def finishes_what_was_cut_short_before_all_else(kernel: Kernel) -> None:
    kernel.set(14)  # 3, then 7 of the first lab, then 4 of the second, which was killed before it could note them
    (kernel.notes / "1-x").write_text("minus 7")
    (kernel.notes / "2-x").write_text("to 10")
    with reserved(1):
        assert kernel.pages == 3


def finishes_what_was_cut_short_also_before_it_gives_back_its_own(kernel: Kernel) -> None:
    with reserved(7):
        (kernel.notes / "2-x").write_text("to 7")
        kernel.set(11)  # by the second lab, killed before it could note its 4 pages
    assert kernel.pages == 0
    assert not list(kernel.notes.iterdir())


@pytest.mark.parametrize("killed", [False, True])
def leaves_to_the_next_what_the_kernel_does_not_do(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    def fail(*_: object) -> None:
        raise Fault("no more")

    with ExitStack() as stack:
        stack.enter_context(reserved(5))
        if killed:
            (kernel.notes / "2-x").write_text("minus 4")
            kernel.set(9)
        with monkeypatch.context() as patched:
            patched.setattr(hugepages, "set_number", fail)
            with pytest.raises(Fault, match="no more"):
                stack.close()
    assert kernel.pages == (9 if killed else 5)
    with reserved(1):
        assert kernel.pages == 1
    assert kernel.pages == 0
    assert not list(kernel.notes.iterdir())


def gives_back_its_own_when_somebody_removed_its_note(kernel: Kernel) -> None:
    with reserved(5):
        for note in kernel.notes.iterdir():
            note.unlink()
    assert kernel.pages == 0


def owes_nothing_from_before_a_reboot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boot = tmp_path / "boot_id"
    monkeypatch.setattr(loans, "BOOT", boot)
    monkeypatch.setattr(loans, "safe_parent", lambda *_: tmp_path)
    boot.write_text("one\n")
    before = loans.folder_of(2048)
    assert before == loans.folder_of(2048)
    boot.write_text("two\n")
    assert before != loans.folder_of(2048)


def needs_no_notes_where_it_can_do_nothing(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel.set(5)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(hugepages, "folder_of", lambda _: None)
    with reserved(5) as added:
        assert added == 0


@pytest.mark.parametrize("pages", [6, 1 << 40])
def leaves_nothing_when_there_are_too_few(kernel: Kernel, monkeypatch: pytest.MonkeyPatch, pages: int) -> None:
    monkeypatch.setattr(hugepages, "set_number", lambda wanted, number: number.write_text(str(min(wanted, 2))))
    with pytest.raises(Fault, match=r"only 2 of 6 huge pages|more huge pages of 2 MiB needed"), reserved(pages):
        raise AssertionError
    assert kernel.pages == 0
    assert not list(kernel.notes.iterdir())
