"""System tests need root (namespaces, packet sockets) and all that is built."""

import os

import pytest
from harness.answers import DL3GEN, PLUGIN
from harness.house import DL3D


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say at once what is missing instead of failing in every test."""
    if items and os.geteuid() != 0:
        pytest.exit("the system tests make network namespaces: run as root", returncode=4)
    for built in (DL3D, DL3GEN, PLUGIN):
        if items and not built.exists():
            pytest.exit(f"{built} is not there: run make build-tests first", returncode=4)
