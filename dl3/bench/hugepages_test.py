"""Huge pages are given back, whatever happens in between."""

from pathlib import Path

import pytest

from dl3.bench import hugepages
from dl3.model.fault import Fault


class Kernel:
    """Two files that act like the kernel's: of `used` pages none is free, and no more than `most` can be had."""

    def __init__(self, folder: Path, total: int, used: int, most: int) -> None:
        self.number, self.free, self.used, self.most = folder / "nr", folder / "free", used, most
        self.write(total)

    def write(self, wanted: int) -> None:
        total = min(wanted, self.most)
        self.number.write_text(str(total))
        self.free.write_text(str(total - self.used))


def pretend(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> None:
    monkeypatch.setattr(hugepages, "NUMBER", kernel.number)
    monkeypatch.setattr(hugepages, "FREE", kernel.free)
    monkeypatch.setattr(hugepages, "set_number", kernel.write)


def _interrupt_holding(pages: int, kernel: Kernel, seen: list[tuple[int, str]]) -> None:
    with hugepages.reserved(pages) as added:
        seen.append((added, kernel.free.read_text()))
        raise KeyboardInterrupt


def adds_what_is_missing_and_gives_it_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, total=10, used=4, most=1000)
    pretend(monkeypatch, kernel)
    seen: list[tuple[int, str]] = []
    with pytest.raises(KeyboardInterrupt):
        _interrupt_holding(100, kernel, seen)
    assert seen == [(94, "100")]
    assert kernel.number.read_text() == "10"


def leaves_enough_pages_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, Kernel(tmp_path, total=200, used=50, most=1000))
    with hugepages.reserved(100) as added:
        assert added == 0


def says_when_the_kernel_has_no_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, total=10, used=0, most=60)
    pretend(monkeypatch, kernel)
    with pytest.raises(Fault, match="only 60 of 100 huge pages"), hugepages.reserved(100):
        pass
    assert kernel.number.read_text() == "10"
