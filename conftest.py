"""Tests are sentences: public functions with an underscore in a test file, written there and not imported."""

import inspect

import pytest


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """Leave out what a test file only imports."""
    is_import = inspect.isfunction(obj) and obj.__module__ != collector.module.__name__ and not name.startswith("_")
    return [] if is_import else None
