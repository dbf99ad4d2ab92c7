"""Rows that need much memory are left out where there is less."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dl3.bench import flows, space
from dl3.bench.flows import FLOW_SETS
from dl3.bench.norow import NoRow
from dl3.bench.sides import Entry, PairSettings
from dl3.bench.space import available_mib, space_for
from dl3.model.fault import Fault

TERMS = PairSettings(memory_mib=1024)
MOST = (Entry("dl3d with flows", flows="33m"), Entry("l3fwd exact match", flows="33m-white-paper"))
GIB_IN_KIB = 1 << 20


@pytest.fixture
def reserved_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What is reserved; with memory for all, and an empty folder of tables."""
    seen: list[int] = []

    @contextmanager
    def reserve(pages: int) -> Iterator[int]:
        seen.append(pages)
        yield pages

    monkeypatch.setattr(space, "reserved", reserve)
    monkeypatch.setattr(space, "disk_mib", lambda _: (0, 0))
    _set_memory(tmp_path, monkeypatch, available_gib=20)
    return seen


def _set_memory(folder: Path, monkeypatch: pytest.MonkeyPatch, available_gib: float, pages: int = 0) -> None:
    """Another /proc/meminfo."""
    path = folder / "meminfo"
    path.write_text(
        f"MemTotal: 99999999 kB\nMemAvailable: {int(available_gib * GIB_IN_KIB)} kB\nHugePages_Free: {pages}\n"
        "Hugepagesize: 2048 kB\n"
    )
    monkeypatch.setattr(space, "MEMINFO", path)


def takes_free_huge_pages_for_available() -> None:
    assert available_mib("MemAvailable: 4096 kB\nHugePages_Free: 3\nHugepagesize: 2048 kB\n") == 4 + 6
    assert available_mib("MemAvailable: 4096 kB\n") == 4


def reserves_what_the_largest_table_takes(reserved_pages: list[int]) -> None:
    with space_for("flows-33m", MOST, TERMS):
        pass
    assert reserved_pages == [(2 * 1024 + FLOW_SETS["33m-white-paper"].l3fwd_mib) // 2 + 256]


def reserves_nothing_for_other_rows(reserved_pages: list[int]) -> None:
    with space_for("xconnect", (Entry("dl3d"), Entry("testpmd io")), TERMS):
        pass
    assert not reserved_pages


def says_how_much_memory_is_missing(reserved_pages: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_memory(tmp_path, monkeypatch, available_gib=2, pages=512)
    # 2 + 1.5 GiB of EAL, 0.5 GiB of pages besides, 1.64 GiB of flows, two tables of 0.5 GiB, 0.5 GiB to spare
    with (
        pytest.raises(NoRow, match=r"no row flows-33m: it needs 7\.1 GiB of memory, 4\.1 GiB more than are available"),
        space_for("flows-33m", MOST, TERMS),
    ):
        pass
    assert not reserved_pages


def says_how_much_disk_space_is_missing(reserved_pages: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "disk_mib", lambda _: (5 * 1024, 1024))
    with (
        pytest.raises(NoRow, match=r"needs 5\.0 GiB of disk space in build/tables, 4\.0 GiB more than"),
        space_for("flows-33m", MOST, TERMS),
    ):
        pass
    assert not reserved_pages


def counts_files_that_are_yet_to_be_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows.FlowFiles, "folder", tmp_path)
    monkeypatch.setattr(flows.FlowFiles.__init__, "__defaults__", (tmp_path,))
    same = (Entry("dl3d with flows", flows="1m"), Entry("l3fwd exact match", flows="1m"))
    needed, there = space.disk_mib(same)
    assert needed == FLOW_SETS["1m"].disk_mib == 80
    assert there > 0
    for path in flows.FlowFiles("1m", 256).paths:
        path.touch()
    assert space.disk_mib(same)[0] == 0


def has_no_row_when_huge_pages_are_short(reserved_pages: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def refuse(pages: int) -> Iterator[int]:
        raise Fault(f"only 7 of {pages} huge pages")
        yield 0

    monkeypatch.setattr(space, "reserved", refuse)
    with pytest.raises(NoRow, match="no row flows-33m: only 7 of"), space_for("flows-33m", MOST, TERMS):
        pass
    assert not reserved_pages


def lets_faults_of_the_row_through(reserved_pages: list[int]) -> None:
    with pytest.raises(Fault, match=r"^other$"), space_for("flows-33m", MOST, TERMS):
        raise Fault("other")
    assert len(reserved_pages) == 1
