"""Plans for simulated machines."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dl3.campaign.budget import FLOOR_S, fitted, shortest, thinned, what_was_shortened
from dl3.campaign.budget_text import seconds_of
from dl3.campaign.duration import Pace, grouped, job_s, total_s
from dl3.campaign.fake import VOCABULARY
from dl3.campaign.machine import Machine
from dl3.campaign.plan import by_key, jobs_of, planned, refitted, shortest_of
from dl3.campaign.proofs import proofs_of
from dl3.campaign.reader import Campaign, parsed
from dl3.campaign.shipped import read_named
from dl3.model.campaign import Plan
from dl3.model.fault import UsageFault

SMALL = Machine(n_cores=2, available_mib=20_000, cpu_model="Xeon", server="a cloud", host_os="Debian 12")
LARGE = Machine(
    n_cores=48, n_numa_nodes=2, n_nics=12, n_virtual_functions=8, available_mib=90_000, has_kvm=True, has_vms=True
)
FILE = """name: mine
title: Mine
duts: [dl3d, l3fwd]
defaults: {frames: [64, 128, 256, imix, 1518], tests: [latency, throughput]}
cases:
  - key: a
    title: A
    parameters: {huge pages: [1 GiB, 2 GiB], server: this machine}
    effort: {seconds: 10, repetitions: 3}
  - {key: b, title: B, needs: SR-IOV}
  - {key: c, title: C, parameters: {huge pages: 1 GiB, cores: [1, 2]}, tests: throughput}
"""


def campaign() -> Campaign:
    return parsed(Path("c.yaml"), FILE.encode(), VOCABULARY)


def _plan_of(name: str, machine: Machine = SMALL, budget_s: float = 0.0) -> Plan:
    return planned(read_named(name, VOCABULARY), machine, "now", budget_s)


def makes_jobs_of_devices_values_frames_and_tests() -> None:
    plan = planned(campaign(), SMALL, "now")
    a, b, c = plan.cases
    assert (len(a.jobs), len(b.jobs), len(c.jobs)) == (2 * 2 * 5 * 2, 0, 2 * 5)
    first = a.jobs[0]
    assert first.key == "a|dl3d|huge pages=1 GiB, server=this machine|throughput|64"
    assert first.parameters == {"huge pages": "1 GiB", "server": "a cloud"}
    assert (first.setup.memory_mib, first.effort.seconds, first.test) == (1024, 10, "throughput")
    assert len(by_key(plan)) == len(jobs_of(plan)) == 50
    assert plan.source == FILE


def offers_the_rates_of_the_report_to_the_frames_that_had_them() -> None:
    jobs = {job.key: job for job in jobs_of(_plan_of("contrail"))}
    one = {frame: jobs[f"6.1|vrouters||frame loss|{frame}"] for frame in ("64", "1468")}
    assert one["64"].effort.rates == (780160, 893336, 907600)
    assert len(one["1468"].effort.rates) == 5
    both = jobs["6.1-both|vrouters||frame loss|64"]
    assert both.effort.rates == tuple(2 * rate for rate in one["64"].effort.rates)
    assert job_s(one["64"]) > job_s(
        one["64"].model_copy(update={"effort": both.effort.model_copy(update={"rates": ()})})
    )


def gives_a_device_no_parameter_that_it_cannot_be_given() -> None:
    text = FILE.replace("l3fwd]", "{name: linux, without: huge pages}]")
    _, _, c = planned(parsed(Path("c.yaml"), text.encode(), VOCABULARY), SMALL, "now").cases
    memory = {(job.setup.dut.name, job.setup.memory_mib) for job in c.jobs}
    assert memory == {("dl3d", 1024), ("linux", 256)}
    assert "c|linux|cores=1|throughput|64" in {job.key for job in c.jobs}


def proves_the_tester_over_each_wire_with_all_frames() -> None:
    wanted = proofs_of(jobs_of(_plan_of("peers")))
    assert [(one.wire, one.frames) for one in wanted] == [(wire, ("64", "imix")) for wire in ("memif", "vhost", "veth")]
    assert proofs_of(jobs_of(_plan_of("white-paper")))[0].frames == ("66", "128", "256", "512", "1024", "imix")


def reports_in_both_languages_what_is_not_applicable_and_why() -> None:
    _, b, c = planned(campaign(), SMALL, "now").cases
    assert b.reason
    assert b.reason.en == "not applicable here: a NIC with SR-IOV is needed, this machine has none"
    assert b.reason.zh == "此处不适用：需要支持 SR-IOV 的网卡，本机没有"
    assert [(left.dut, left.parameters["cores"]) for left in c.left_out] == [("dl3d", "2"), ("l3fwd", "2")]
    assert c.left_out[0].reason.en == "not applicable here: 2 cores forward and 1 generates, this machine has 2"


def reports_that_a_device_is_not_installed() -> None:
    machine = SMALL.model_copy(update={"missing": {"l3fwd": "l3fwd is not installed: run tools/build-peers"}})
    a, _, _ = planned(campaign(), machine, "now").cases
    assert {job.setup.dut.name for job in a.jobs} == {"dl3d"}
    assert {left.dut for left in a.left_out} == {"l3fwd"}
    assert a.left_out[0].reason.en == "not applicable here: l3fwd is not installed: run tools/build-peers"


@pytest.mark.parametrize(
    ("change", "key", "wanted"),
    [
        ({"n_numa_nodes": 1}, "1.3", "two NUMA nodes are needed, this machine has 1"),
        ({"n_nics": 1}, "1.3", "a NIC with two ports is needed, this machine has 1"),
        ({"has_vms": False}, "2.6", "ports of VMs need qemu and KVM, this machine lacks them"),
        ({"available_mib": 512}, "1.1", "1,536 MiB of huge pages are needed, memory is left for 512"),
        ({"n_cores": 1}, "1.4", "1 cores forward and 1 generates, this machine has 1"),
        ({}, "2.4", "'NUMA placement' is not set up by dl3"),
    ],
)
def names_what_a_machine_lacks(change: dict[str, object], key: str, wanted: str) -> None:
    plan = _plan_of("white-paper", LARGE.model_copy(update=change))
    (case,) = [case for case in plan.cases if case.key == key]
    assert case.reason
    assert wanted in case.reason.en
    assert case.reason.zh.startswith("此处不适用：")


def measures_only_lcores_on_which_a_device_can_forward() -> None:
    (case,) = [case for case in _plan_of("thesis", LARGE).cases if case.key == "4.4"]
    assert {(job.parameters["lcores"], job.setup.dut_cores, job.setup.cores) for job in case.jobs} == {
        ("1,2", (1, 2), 2)
    }
    apart = {left.parameters["lcores"]: left.reason for left in case.left_out}
    assert list(apart) == ["1,2,1", "1,2,2", "1,2,3", "1,2,4", "1,2,9", "1,2,10", "1,2,11"]
    assert "lcores 1,2,1 receive and forward on different cores" in apart["1,2,1"].en
    (alone,) = [case for case in _plan_of("thesis", LARGE).cases if case.key == "4.2"]
    assert [(job.setup.dut_cores, job.setup.cores) for job in alone.jobs] == [((1,), 1), ((0,), 1)]


def lets_a_program_that_rewrites_addresses_stand_for_l2fwd() -> None:
    (case,) = [case for case in _plan_of("thesis").cases if case.key == "l2"]
    assert {(job.setup.dut.kind, *job.setup.dut.options.items()) for job in case.jobs} == {("testpmd", ("mode", "mac"))}


def shows_all_cases_of_the_white_paper_on_any_machine() -> None:
    for machine in (SMALL, LARGE, Machine(n_cores=1)):
        plan = _plan_of("white-paper", machine)
        assert len(plan.cases) == 19
        assert all(case.jobs or case.reason for case in plan.cases)
    assert {case.key for case in _plan_of("white-paper").cases if case.jobs} == {
        *("1.1", "1.2", "1.4", "1.5", "1.6", "1.7", "1.8", "3.1", "3.2", "3.3")
    }


def starts_a_bed_once_for_all_jobs_that_share_it() -> None:
    groups = grouped(jobs_of(_plan_of("white-paper")))
    beds = [(group[0].setup, group[0].traffic) for group in groups]
    assert len(beds) == len({bed[0].model_dump_json() + bed[1].model_dump_json() for bed in beds})
    assert {job.case for job in groups[0]} >= {"1.1", "1.4", "1.5", "1.6"}


def leaves_a_plan_alone_that_fits() -> None:
    assert _plan_of("smoke", budget_s=3600).cases == _plan_of("smoke").cases
    assert _plan_of("smoke", budget_s=3600).shortened == ()


def shortens_repetitions_first_then_trials() -> None:
    jobs = jobs_of(planned(campaign(), SMALL, "now"))
    whole_s = total_s(jobs)
    less = fitted(jobs, whole_s * 1.2)
    assert {job.effort.repetitions for job in less.jobs if job.case == "a"} == {2}
    assert {job.effort.seconds for job in less.jobs if job.case == "a"} == {10}
    assert [text.en for text in less.shortened] == ["repetitions: 2 instead of 3, in 40 jobs"]
    shorter = fitted(jobs, whole_s * 0.2)
    assert {job.effort.repetitions for job in shorter.jobs} == {1}
    assert 1 < max(job.effort.seconds for job in shorter.jobs) < 10
    assert len(shorter.jobs) == len(jobs)


def thins_frame_sizes_from_the_middle_and_reports_which() -> None:
    assert thinned(["64", "128", "256", "512", "1518"]) == ["64", "128", "512", "1518"]
    assert thinned(["64", "imix", "1518", "128"]) == ["64", "imix", "1518"]
    assert thinned(["64", "imix", "1518"]) == ["64", "1518"]
    plan = _plan_of("white-paper", budget_s=600)
    for case in plan.cases:
        frames = {job.frame for job in case.jobs}
        assert not case.jobs or frames >= {"66", "1024"}
    assert any("left out in" in text.en for text in plan.shortened)
    assert any("不再测帧长" in text.zh for text in plan.shortened)


def reports_what_the_least_time_is() -> None:
    with pytest.raises(UsageFault, match=r"^the time budget of 1m is too short") as fault:
        _plan_of("white-paper", budget_s=60)
    assert "minimum " in str(fault.value)


@pytest.mark.parametrize("name", ["white-paper", "smoke", "peers"])
def takes_the_least_budget_that_it_names(name: str) -> None:
    with pytest.raises(UsageFault) as fault:
        _plan_of(name, budget_s=1)
    named = re.search(r"minimum (\S+);", str(fault.value))
    assert named
    least_s = seconds_of(named[1])
    assert _plan_of(name, budget_s=least_s).seconds <= least_s
    with pytest.raises(UsageFault):
        _plan_of(name, budget_s=least_s - 1)


@given(st.floats(60, 5000))
@settings(max_examples=60)
def never_promises_more_than_the_budget_and_never_drops_a_case(budget_s: float) -> None:
    whole = _plan_of("white-paper")
    try:
        plan = _plan_of("white-paper", budget_s=budget_s)
    except UsageFault:
        return
    assert plan.seconds <= budget_s
    is_shortest = jobs_of(plan) == shortest(jobs_of(whole))
    assert is_shortest or plan.seconds <= 0.85 * budget_s, "trials that are made again have their time"
    for before, after in zip(whole.cases, plan.cases, strict=True):
        groups = {job.key.rsplit("|", 2)[0] for job in before.jobs}
        assert groups == {job.key.rsplit("|", 2)[0] for job in after.jobs}
        assert {(job.setup.dut.name, job.test) for job in before.jobs} == {
            (j.setup.dut.name, j.test) for j in after.jobs
        }
        assert all(job.effort.seconds >= FLOOR_S for job in after.jobs)
    assert bool(plan.shortened) == (jobs_of(plan) != jobs_of(whole))


def corrects_what_is_left_by_what_was_measured() -> None:
    jobs, pace = jobs_of(_plan_of("smoke")), Pace()
    assert total_s(jobs, pace) == pytest.approx(total_s(jobs))
    pace.learn("job", 1800, 3600)
    assert pace.factor("job") == pytest.approx(2, rel=0.1)
    assert total_s(jobs, pace) > 1.7 * total_s(jobs)


def counts_one_job_as_one() -> None:
    jobs = jobs_of(planned(campaign(), SMALL, "now"))
    effort = jobs[0].effort.model_copy(update={"repetitions": 1})
    shorter = (jobs[0].model_copy(update={"effort": effort}), *jobs[1:])
    assert [text.en for text in what_was_shortened(jobs, shorter)] == ["repetitions: 1 instead of 3, in 1 job"]


def makes_later_jobs_shorter_and_reports_it() -> None:
    whole, plan, pace = _plan_of("white-paper"), _plan_of("white-paper", budget_s=1200), Pace()
    jobs = jobs_of(plan)
    pace.learn("job", 600, 900)
    later = refitted(plan, whole, {job.key for job in jobs[50:]}, 400, pace)
    assert jobs_of(later)[:50] == jobs[:50]
    left = jobs_of(later)[50:]
    assert total_s(left, pace) <= 400
    assert sum(map(job_s, left)) < sum(map(job_s, jobs[50:]))
    low, high = sorted((left[0].effort.seconds, jobs[0].effort.seconds))
    assert later.shortened[0].en == f"trials of {low:g} to {high:g} s instead of 2 s, in {len(jobs_of(later))} jobs"
    assert later.shortened[0].zh == f"{len(jobs_of(later))} 项测试的单次时长由 2 秒减为 {low:g} 至 {high:g} 秒"


def gives_back_what_was_taken_away_where_there_is_time_again() -> None:
    whole, plan = _plan_of("white-paper"), _plan_of("white-paper", budget_s=600)
    left = {job.key for job in jobs_of(whole)} - {job.key for job in jobs_of(plan)[:20]}
    later = refitted(plan, whole, left, 1e6, Pace())
    assert jobs_of(plan)[:20] == tuple(job for job in jobs_of(later) if job.key not in left)
    assert {job.key: job for job in jobs_of(later) if job.key in left} == {
        job.key: job for job in jobs_of(whole) if job.key in left
    }
    assert [case.key for case in later.cases] == [case.key for case in whole.cases]
    assert all("in 20 jobs" in text.en for text in later.shortened)
    assert len(later.deviations) == len(set(later.deviations)) >= len(whole.deviations)


def goes_on_as_short_as_can_be_when_the_budget_is_used_up() -> None:
    plan = _plan_of("smoke")
    left = {job.key for job in jobs_of(plan)[2:]}
    with pytest.raises(UsageFault):
        refitted(plan, plan, left, 0.0, Pace())
    later = shortest_of(plan, plan, left, Pace())
    assert {job.effort.seconds for job in jobs_of(later)[2:]} == {FLOOR_S}
    assert len(jobs_of(later)) == len(jobs_of(plan))
