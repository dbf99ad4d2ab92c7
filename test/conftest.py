"""System tests need root (namespaces, packet sockets) and a complete build."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from harness.answers import DL3GEN
from harness.network import Network, NetworkPool
from harness.packages import build
from harness.plugins import DEVICES
from harness.router import ROUTERS
from harness.wired import BUILD, DL3D

from dl3.host.sessions import weighed_alone


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Report what is missing once instead of failing every test."""
    if items and os.geteuid() != 0:
        pytest.exit("the system tests make network namespaces: run as root", returncode=4)
    # Guests run a build without the parts that only tests need.
    needs_all = any("guest" not in item.path.parts for item in items)
    for built in (DL3D, DL3GEN, DEVICES / "answers.so") if needs_all else (DL3D,):
        if items and not built.exists():
            pytest.exit(f"{built} is not there: run make build-tests first", returncode=4)


@pytest.fixture(scope="session", autouse=True)
def sessions() -> Iterator[None]:
    """Programs share two cores with workers; Linux schedules them by thread."""
    with weighed_alone():
        yield


@pytest.fixture(scope="session")
def packages_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder with the packages of this commit for a suite of Debian, built once."""

    @cache
    def built(suite: str) -> Path:
        folder = tmp_path_factory.mktemp(suite) / "packages"
        build(suite, folder, {})
        return folder

    return built


# An instrumented build is slow.
LENGTHS = ("short", pytest.param("long", marks=pytest.mark.long)) if BUILD.name == "build" else ("short",)


@pytest.fixture(params=LENGTHS)
def is_long(request: pytest.FixtureRequest) -> bool:
    """Whether the test runs long enough to find rare faults; each test that uses it is run both ways."""
    return bool(request.param == "long")


@pytest.fixture(scope="module", params=ROUTERS)
def network_pool(request: pytest.FixtureRequest) -> Iterator[NetworkPool]:
    """The network of a module: first with the kernel as router (the control), then with dl3d."""
    made = NetworkPool(request.param)
    yield made
    made.clear()


@pytest.fixture
def network(network_pool: NetworkPool) -> Iterator[Network]:
    """Hosts around a router in their initial state; afterwards the router's packet accounting must balance."""
    try:
        made = network_pool.take()
        yield made
        made.the_router.check()
    except BaseException:  # the next test gets a new one
        network_pool.clear()
        raise
    if made.has_died():
        network_pool.clear()
        pytest.fail("dl3d has died")
