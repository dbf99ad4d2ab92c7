"""Bounded and unbounded files."""

import os
import threading
from pathlib import Path

import pytest

from dl3.model.fault import UsageFault
from dl3.model.files import read_bounded, unprintable


def reads_a_file_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1234")
    assert read_bounded(tmp_path / "a", 4, "a record") == b"1234"
    with pytest.raises(UsageFault, match=r"a has more than 3 bytes, the maximum for a record: choose another file$"):
        read_bounded(tmp_path / "a", 3, "a record")


def reads_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"12",))
    writer.start()
    assert read_bounded(tmp_path / "pipe", 4, "a record") == b"12"
    writer.join()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def refuses_devices(device: str) -> None:
    with pytest.raises(UsageFault, match=f"^{device} is a device, not a record: choose a regular file$"):
        read_bounded(Path(device), 4, "a record")


def a_sparse_file_costs_no_more_than_its_bound(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UsageFault, match="has more than 1,000 bytes"):
        read_bounded(tmp_path / "sparse", 1000, "a record")


def names_what_no_text_can_hold() -> None:
    assert unprintable("größer 大") == ""
    assert unprintable("a\0b") == "the character NUL"
    assert unprintable("a\ud800") == "half of a surrogate pair, \\ud800, which is not a character"
