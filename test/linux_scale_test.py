"""A million BGP routes: from BIRD through FRR and the kernel to the workers, withdrawn, overrun, and after a crash.

Times are printed, not checked, since the machine is shared. Checked is that the final state is correct.
"""

import contextlib
import os
import time
from collections.abc import Iterator

import pytest
from harness.million import Million, datagrams, resident_mb, wait_for
from harness.router import Dl3dRouter
from harness.stall import stalled
from harness.wired import BUILD

from dl3.lab.namespace import Lab

pytestmark = [pytest.mark.long, pytest.mark.alone]  # a million routes through four programs
IS_SANITIZED = BUILD.name != "build"
NUMBER = int(os.environ.get("DL3_N", 50_000 if IS_SANITIZED else 1_000_000))
PATIENCE_S = 240.0
PPS = 500.0


@pytest.fixture(scope="module")
def million() -> Iterator[Million]:
    with Lab() as lab:
        router = Dl3dRouter(lab, keep=True)
        with contextlib.closing(router), contextlib.closing(Million(lab, router, NUMBER)) as made:
            router.start(2)
            made.start()
            yield made
            router.settle()
            router.check()


def _router(million: Million) -> Dl3dRouter:
    assert isinstance(million.router, Dl3dRouter)
    return million.router


def _is_level(million: Million, number: int) -> bool:
    reported = _router(million).call("mirror")
    return bool(reported["state"] == "following" and abs(reported["routes4"] - number) < 100)


def _overruns(million: Million) -> int:
    return int(_router(million).call("mirror")["overruns"])


def _print(capsys: pytest.CaptureFixture[str], words: str) -> None:
    with capsys.disabled():
        print(f"\n  {words}", end="")


def _check_by_sample(million: Million) -> None:
    reply = _router(million).call("verify", sample=2000)
    assert reply["listed"] == []


def all_routes_reach_the_fast_path(million: Million, capsys: pytest.CaptureFixture[str]) -> None:
    begin = time.monotonic()
    in_kernel = wait_for(lambda: million.n_kernel() >= NUMBER, PATIENCE_S)
    in_workers = wait_for(lambda: _is_level(million, NUMBER), PATIENCE_S)
    forwarder = _router(million).forwarder
    assert forwarder
    _print(
        capsys,
        f"{NUMBER:,} routes: in the kernel after {in_kernel - begin:.1f} s, in the fast path"
        f" {in_workers - in_kernel:.2f} s later, {_overruns(million)} overruns,"
        f" {resident_mb(forwarder.process.pid):.0f} MB resident",
    )
    _check_by_sample(million)


def a_crash_costs_no_session_and_little_traffic(million: Million, capsys: pytest.CaptureFixture[str]) -> None:
    forwarder = _router(million).forwarder
    assert forwarder
    with datagrams(million, PPS) as counts:
        time.sleep(2.0)
        before = counts.sent - counts.received
        forwarder.kill()
        begin = time.monotonic()
        forwarder.start_again()
        forwarder.wait_ready()
        level = wait_for(lambda: _is_level(million, NUMBER), PATIENCE_S)
        received = counts.received
        time.sleep(1.0)
        assert counts.received - received > PPS / 4, "it forwards again"
    lost = counts.sent - counts.received - before
    _print(
        capsys,
        f"killed and started again with {NUMBER:,} routes: {lost} of {counts.sent} datagrams lost at"
        f" {PPS:.0f}/s, so {lost / PPS:.2f} s; all routes after {level - begin:.2f} s",
    )
    assert million.frr
    assert million.frr.show("bgp ipv4 unicast summary")["peers"]["10.0.0.2"]["connectionsDropped"] == 0
    _check_by_sample(million)


def all_are_withdrawn(million: Million, capsys: pytest.CaptureFixture[str]) -> None:
    before = _overruns(million)
    begin = time.monotonic()
    million.tell(False)
    out_of_kernel = wait_for(lambda: million.n_kernel() == 0, PATIENCE_S)
    out_of_workers = wait_for(lambda: _is_level(million, 0), PATIENCE_S)
    _print(
        capsys,
        f"withdrawn: out of the kernel after {out_of_kernel - begin:.1f} s, out of the fast path"
        f" {out_of_workers - out_of_kernel:.2f} s later, {_overruns(million) - before} overruns",
    )


def all_come_although_the_mirror_was_overrun(million: Million, capsys: pytest.CaptureFixture[str]) -> None:
    forwarder = _router(million).forwarder
    assert forwarder
    before = _overruns(million)
    with stalled(forwarder.process.pid):  # its control thread is stopped while half of them arrive
        million.tell(True)
        wait_for(lambda: million.n_kernel() >= NUMBER // 2, PATIENCE_S)
    in_kernel = wait_for(lambda: million.n_kernel() >= NUMBER, PATIENCE_S)
    in_workers = wait_for(lambda: _is_level(million, NUMBER), PATIENCE_S)
    n_overruns = _overruns(million) - before
    _print(
        capsys,
        f"with {n_overruns} overruns: in the fast path {in_workers - in_kernel:.2f} s after the kernel had all",
    )
    assert n_overruns or IS_SANITIZED, "it was to be overrun"
    _check_by_sample(million)
