"""Full disks, on a small tmpfs. Like the system tests, these tests run as root."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dl3.model.campaign import Skipped
from dl3.model.fault import UsageFault
from dl3.record.journal import DiskFull, Unwritable, append, mend, spare_of
from dl3.record.reader import read
from dl3.record.spare import SPARE_BYTES, kept


def entry(number: int, n_bytes: int = 100) -> Skipped:
    return Skipped(at="t", campaign="c", job=str(number), reason="x" * n_bytes)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def fill(disk: Path) -> Path:
    """Use up all remaining space."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return ballast


def writes_the_last_line_into_the_spare_and_goes_on_after_room_was_made(disk: Path) -> None:
    path = disk / "r.jsonl"
    with kept(path):
        append(path, entry(1))
        assert spare_of(path).stat().st_size == SPARE_BYTES
        ballast = fill(disk)
        with pytest.raises(DiskFull, match="is full: free some space; all results are recorded"):
            append(path, entry(2, 100_000))
    assert [one.job for one in read(path).skipped] == ["1", "2"]
    fill(disk)
    with pytest.raises(DiskFull, match="is full: free some space, then continue"), kept(path):
        raise AssertionError
    (disk / "ballast").unlink()
    with kept(path):
        append(path, entry(3))
    assert [one.job for one in read(path).skipped] == ["1", "2", "3"]
    assert read(path).left_out == ()
    assert not spare_of(path).exists()
    assert not ballast.exists()


def cuts_off_half_a_line_when_there_is_no_spare(disk: Path) -> None:
    path = disk / "r.jsonl"
    append(path, entry(1))
    fill(disk)
    before = path.read_bytes()
    with pytest.raises(DiskFull, match="free some space; all earlier results are recorded"):
        append(path, entry(2, 500_000))
    assert path.read_bytes() == before


def lets_nobody_else_write_to_the_same_record(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with kept(path), pytest.raises(UsageFault, match="another dl3 is writing to"), kept(path):
        raise AssertionError
    with kept(path):
        append(path, entry(1))
    assert [one.job for one in read(path).skipped] == ["1"]


def reports_when_a_record_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable, match="cannot be written: File exists"), kept(tmp_path / "file" / "r.jsonl"):
        raise AssertionError


def cuts_off_half_a_line_that_somebody_was_killed_in(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    assert mend(path) == 0
    append(path, entry(1))
    whole = path.read_bytes()
    assert mend(path) == 0
    path.write_bytes(whole + b'{"kind": "skip')
    assert mend(path) == len(b'{"kind": "skip')
    assert path.read_bytes() == whole
    path.write_bytes(b'{"kind"')
    mend(path)
    assert path.read_bytes() == b""
