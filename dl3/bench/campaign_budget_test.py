"""Campaigns stay within their budget: later jobs are shortened or lengthened."""

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dl3.bench.campaign import Conductor
from dl3.bench.fake_environment import MACHINE, FakeEnvironment, NotingListener, conducted, plan
from dl3.bench.past import read_past
from dl3.campaign.budget import FLOOR_S
from dl3.campaign.duration import Pace
from dl3.campaign.fake import VOCABULARY
from dl3.campaign.machine import Machine
from dl3.campaign.plan import by_key, jobs_of, planned, with_fitted
from dl3.campaign.reader import parsed
from dl3.model.campaign import Plan
from dl3.model.fault import UsageFault
from dl3.record.journal import append
from dl3.record.reader import read


def makes_later_jobs_shorter_when_the_machine_is_slower_than_planned(tmp_path: Path) -> None:
    path, listener, fake = tmp_path / "r.jsonl", NotingListener(), FakeEnvironment(slowness=6.0)
    budget_s = plan().seconds * 1.2
    conducted(path, fake, budget_s, listener)
    assert listener.plans
    assert listener.plans[-1].shortened
    assert fake.time_s <= budget_s * 1.1
    record = read(path)
    assert record.plans[-1] == listener.plans[-1]
    assert len(record.finished) == len(jobs_of(listener.plans[-1])) >= 6
    seconds = [trial.seconds for trial in record.trials if trial.test == "throughput"]
    assert seconds[-1] < seconds[0]


@pytest.mark.parametrize("every", [3, 5, 20])
def keeps_to_the_budget_though_trials_are_made_again(every: int, tmp_path: Path) -> None:
    turns = count(1)

    def spoil(results: dict[str, Any]) -> None:
        if next(turns) % every == 0:
            for stream in results["streams"]:
                stream["late"] += stream["sent"] // 100

    fake, whole = FakeEnvironment(spoil=spoil), sized()
    budget_s = 1.3 * least(sized)
    path = tmp_path / "r.jsonl"
    first = sized(budget_s)
    append(path, first)
    conductor = Conductor(first, path, fake.environment(), NotingListener(), budget_s=budget_s, whole=whole)
    conductor.run()
    assert not conductor.failed
    assert sum(bool(trial.invalid) for trial in read(path).trials) >= 0.7 * len(read(path).trials) / every
    assert fake.time_s <= budget_s


THREE_SIZES = """name: mine
title: Mine
duts: dl3d
defaults: {frames: [64, 256, 512], tests: [throughput], effort: {seconds: 1, method: binary, resolution: 0.02}}
cases:
  - {key: a, title: A, parameters: {huge pages: [256 MiB, 512 MiB]}}
  - {key: b, title: B, frames: [64, 256], parameters: {flows: 7}}
"""


def sized(budget_s: float = 0.0, machine: Machine = MACHINE) -> Plan:
    return planned(parsed(Path("c.yaml"), THREE_SIZES.encode(), VOCABULARY), machine, "now", budget_s)


def least(plan_of: Callable[[float], Plan]) -> int:
    """The smallest budget that is accepted."""
    for seconds in range(1, 1000):
        try:
            plan_of(seconds)
        except UsageFault:
            continue
        return seconds
    raise AssertionError("all budgets are refused")


def gives_time_back_when_the_machine_is_faster_than_planned(tmp_path: Path) -> None:
    path, listener, fake = tmp_path / "r.jsonl", NotingListener(), FakeEnvironment(slowness=0.2)
    whole, budget_s = sized(), least(sized)
    first = sized(budget_s)
    gone = by_key(whole).keys() - by_key(first).keys()
    assert {key.rsplit("|", 1)[1] for key in gone} == {"256"}
    append(path, first)
    conductor = Conductor(first, path, fake.environment(), listener, budget_s=budget_s, whole=whole)
    conductor.run()
    assert fake.time_s <= budget_s
    assert conductor.done == by_key(whole).keys() > gone
    last = read(path).plans[-1]
    assert last == listener.plans[-1] == conductor.plan
    assert by_key(last).keys() == by_key(whole).keys()
    assert not any("left out" in text.en for text in last.shortened)
    assert max(job.effort.seconds for key, job in by_key(last).items() if key in gone) > FLOOR_S


def takes_back_no_sizes_that_the_tester_was_not_proved_with(tmp_path: Path) -> None:
    whole = sized()
    first = with_fitted(whole, whole, by_key(whole), [job for job in jobs_of(whole) if job.frame != "256"], Pace())
    path = tmp_path / "r.jsonl"
    append(path, first)
    conductor = Conductor(first, path, FakeEnvironment().environment(), NotingListener(), budget_s=1e5, whole=whole)
    conductor.run()
    assert {job.frame for job in jobs_of(conductor.plan)} == {"64", "512"}
    assert {point.frame for proof in read(path).proofs for point in proof.points} == {"64", "512"}


def keeps_what_was_shortened_and_left_out_when_the_machine_has_become_another(tmp_path: Path) -> None:
    small = Machine(n_cores=2, available_mib=800)
    first = sized(least(partial(sized, machine=small)), small)
    assert first.cases[0].left_out
    assert first.shortened
    path = tmp_path / "r.jsonl"
    append(path, first)
    past = read_past(path, THREE_SIZES)
    for budget_s in (1e5, 1.0):
        rest = Conductor(first, path, FakeEnvironment().environment(), NotingListener(), past, budget_s, sized()).rest()
        assert rest.shortened[: len(first.shortened)] == first.shortened
        assert [case.left_out for case in rest.cases] == [case.left_out for case in first.cases]
        assert by_key(rest).keys() <= by_key(first).keys()
