"""System tests need root (namespaces, packet sockets) and a built dl3d."""

import os

import pytest
from harness.house import DL3D


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say at once what is missing instead of failing in every test."""
    if items and os.geteuid() != 0:
        pytest.exit("the system tests make network namespaces: run as root", returncode=4)
    if items and not DL3D.exists():
        pytest.exit(f"{DL3D} is not there: run make first", returncode=4)
