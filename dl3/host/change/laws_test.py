"""Laws over random machines: whatever is applied, undo brings back every byte, also if something fails or is killed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from dl3.host.change.apply import apply
from dl3.host.change.confirm import confirm
from dl3.host.change.fixture import Crash, Kernel, Manifest, manifest, stop_after
from dl3.host.change.undo import undo, undo_unconfirmed
from dl3.host.facts.read import read
from dl3.host.fixture import Machine
from dl3.host.tuning.plan import Tuning, plan
from dl3.host.tuning.request import Request
from dl3.host.tuning.step import target
from dl3.host.tuning.strategies import machines, requests
from dl3.model.fault import Fault, UsageFault

few = settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


@contextmanager
def _written(made: Machine, request: Request) -> Iterator[tuple[Path, Tuning, Manifest]]:
    """The machine below a folder, a plan for it, and all its files. Machines without a core for workers are left out."""
    folder = Path(tempfile.mkdtemp(prefix="dl3-laws-"))
    try:
        root = folder / "root"
        made.write(root)
        try:
            tuning = plan(read(Kernel(root).tree), request)
        except UsageFault:
            assume(False)
        yield root, tuning, manifest(root)
    finally:
        shutil.rmtree(folder)


@given(machines(), requests, st.booleans(), st.booleans())
@few
def undo_restores_every_byte(made: Machine, request: Request, confirms: bool, waits: bool) -> None:
    with _written(made, request) as (root, tuning, before):
        kernel = Kernel(root, own_driver=made.driver)
        apply(kernel, tuning)
        if waits:
            undo_unconfirmed(kernel)
        assert confirm(kernel) == (bool(tuning.unconfirmed) and not waits) if confirms else True
        again = {target(step) for step in plan(read(kernel.tree), request).steps}
        waiting = tuning.unconfirmed if waits else frozenset() if confirms else tuning.held
        reverted = {target(tuning.steps[n]) for n in waiting | tuning.tried}
        assert again == reverted, "only what is not in place would be planned again"
        assert undo(kernel) == ()
        assert manifest(root) == before


@given(machines(), requests, st.data())
@few
def killed_at_any_change_it_still_comes_back(made: Machine, request: Request, data: st.DataObject) -> None:
    with _written(made, request) as (root, tuning, before):
        own = made.driver
        with suppress(Crash):
            apply(Kernel(root, own_driver=own, passing=stop_after(data.draw(st.integers(0, 150)))), tuning)
        for _ in range(data.draw(st.integers(0, 2))):
            with suppress(Crash):
                undo(Kernel(root, own_driver=own, passing=stop_after(data.draw(st.integers(0, 60)))))
        undo(Kernel(root, own_driver=own))
        assert manifest(root) == before


@given(machines(), requests, st.data())
@few
def whatever_fails_at_apply_and_undo_the_next_undo_completes(
    made: Machine, request: Request, data: st.DataObject
) -> None:
    with _written(made, request) as (root, tuning, before):
        assume(tuning.steps)
        fails = st.sampled_from([target(step) for step in tuning.steps if step.kind != "file"] or ["/none"])
        with suppress(Fault):
            apply(Kernel(root, own_driver=made.driver, fails=data.draw(fails)), tuning)
        undo(Kernel(root, own_driver=made.driver, fails=data.draw(fails)))
        assert undo(Kernel(root, own_driver=made.driver)) in ((), None)
        assert manifest(root) == before
