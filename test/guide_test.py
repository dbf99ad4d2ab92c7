"""The guides say what is so."""

import tomllib

import pytest
from harness.house import TOP

CLASSES = tomllib.loads((TOP / "schema" / "classes.toml").read_text(encoding="utf-8"))["class"]


@pytest.mark.parametrize("guide", ["operate.md", "operate.zh.md"])
def the_guide_lists_each_class_with_its_limit(guide: str) -> None:
    lines = (TOP / "docs" / "guide" / guide).read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `")][-len(CLASSES) :]
    wanted = [f"| `{one['name']}` | {one['rate']} | {one['burst']} | " for one in CLASSES]
    assert [row[: len(begin)] for row, begin in zip(rows, wanted, strict=True)] == wanted
