"""Tests are sentences: public functions with an underscore in a test file, written there and not imported.

Those marked `long` run on demand: --long adds them, -m selects as it says, and a test named with :: always runs.
"""

import inspect

import pytest


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """Leave out what a test file only imports."""
    is_import = inspect.isfunction(obj) and obj.__module__ != collector.module.__name__ and not name.startswith("_")
    return [] if is_import else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let all tests run."""
    parser.addoption("--long", action="store_true", help="run the long tests, too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long ones unless somebody asks for them."""
    if config.option.long or config.option.markexpr or any("::" in arg for arg in config.args):
        return
    if left_out := [item for item in items if item.get_closest_marker("long")]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
