"""Values that are measured in place of those that a machine cannot run."""

from pathlib import Path

import pytest

from dl3.campaign.duration import bed_of, bed_s
from dl3.campaign.fake import VOCABULARY
from dl3.campaign.machine import GENERATOR_MIB, Machine
from dl3.campaign.plan import jobs_of, planned
from dl3.campaign.reader import parsed
from dl3.campaign.shipped import read_named
from dl3.model.campaign import Case, Plan
from dl3.model.fault import UsageFault
from dl3.model.flow_memory import table_mib

HEAD = """name: mine
title: Mine
duts: {name: table, kind: dl3d, options: {lookup: flow}}
defaults: {frames: 64, tests: throughput}
cases:
  - key: a
    title: A
    parameters: {flows: [1000, 2x16777216], huge pages: 1 GiB}
"""
INSTEAD = "    instead: {flows: {2x16777216: [2x8388608, 4194304]}}\n"
PAGES = 1024 + GENERATOR_MIB


def _plan(text: str, available_mib: int, n_cores: int = 2) -> Plan:
    machine = Machine(n_cores=n_cores, available_mib=available_mib)
    return planned(parsed(Path("c.yaml"), text.encode(), VOCABULARY), machine, "now")


def _case(text: str, available_mib: int, n_cores: int = 2) -> Case:
    (case,) = _plan(text, available_mib, n_cores).cases
    return case


def _flows(case: Case) -> list[str]:
    return [job.parameters["flows"] for job in case.jobs]


@pytest.mark.parametrize(
    ("available_mib", "wanted"),
    [
        (PAGES + table_mib(1 << 24), ["1000", "2x16777216"]),
        (PAGES + table_mib(1 << 24) - 1, ["1000", "2x8388608"]),
        (PAGES + table_mib(1 << 23), ["1000", "2x8388608"]),
        (PAGES + table_mib(1 << 23) - 1, ["1000", "4194304"]),
    ],
)
def takes_the_first_value_for_which_there_is_memory(available_mib: int, wanted: list[str]) -> None:
    case = _case(HEAD + INSTEAD, available_mib)
    assert _flows(case) == wanted
    assert [(one.parameters["flows"], one.instead) for one in case.left_out] == (
        [] if wanted[1] == "2x16777216" else [("2x16777216", {"flows": wanted[1]})]
    )


def reports_both_values_in_both_languages() -> None:
    (left,) = _case(HEAD + INSTEAD, 2900).left_out
    assert left.reason.en == (
        "not applicable here: 1,685 MiB for a flow table and 1,536 MiB of huge pages are needed, memory is left for "
        "2,900; measured instead: flows 2x8388608"
    )
    assert left.reason.zh == (
        "此处不适用：流表需要 1,685 MiB，大页需要 1,536 MiB，内存只够 2,900 MiB；改为测量 flows 2x8388608"
    )


def changes_nothing_without_being_told() -> None:
    case = _case(HEAD, 2900)
    assert _flows(case) == ["1000"]
    assert [(one.parameters["flows"], one.instead) for one in case.left_out] == [("2x16777216", {})]
    assert "instead" not in case.left_out[0].reason.en


def takes_no_other_value_where_that_does_not_help() -> None:
    case = _case(HEAD + INSTEAD, PAGES + table_mib(1 << 22) - 1)
    assert _flows(case) == ["1000"]
    assert [one.instead for one in case.left_out] == [{}]
    alone = _case(HEAD + INSTEAD, 90_000, n_cores=1)
    assert not alone.jobs
    assert alone.reason
    assert "instead" not in alone.reason.en


def needs_memory_for_flows_only_where_a_device_has_a_table() -> None:
    assert _flows(_case(HEAD.replace("flow}", "route}"), PAGES)) == ["1000", "2x16777216"]


def counts_a_workers_counters_of_flows() -> None:
    text = HEAD.replace("huge pages", "cores: 2, huge pages")
    assert table_mib(1 << 24, 2) - table_mib(1 << 24) == 512
    assert _flows(_case(text, PAGES + table_mib(1 << 24, 2), n_cores=3)) == ["1000", "2x16777216"]
    assert _flows(_case(text, PAGES + table_mib(1 << 24, 2) - 1, n_cores=3)) == ["1000"]


def has_time_to_fill_tables() -> None:
    few, many = jobs_of(_plan(HEAD, 90_000))
    plain = many.model_copy(
        update={"setup": few.setup.model_copy(update={"dut": few.setup.dut.model_copy(update={"options": {}})})}
    )
    assert bed_s(bed_of(many)) > bed_s(bed_of(plain)) + 20
    assert bed_s(bed_of(few)) < bed_s(bed_of(plain)) + 0.1


@pytest.mark.parametrize(
    ("instead", "wanted"),
    [
        ("{cores: {1: 2}}", "line 9: 'instead': 'cores' is not among the case's parameters: expected one of flows, "),
        ("{flows: {7: 8}}", "line 9: 'instead': found '7', expected one of 1000, 2x16777216"),
        ("{flows: {2x16777216: [9, 0]}}", "line 9: 'flows': found '0', expected a whole number from 1 to 16,777,216"),
        ("{flows: {2x16777216: 1000}}", "line 9: 'instead': '1000' is measured already, leave it out"),
        ("{flows: {2x16777216: [9, 9]}}", "line 9: 'instead': '9' is measured already, leave it out"),
        ("{flows: {2x16777216: 9, 1000: 9}}", "line 9: 'instead': '9' is measured already, leave it out"),
        ("{flows: 9}", "line 9: 'flows': found '9', expected a map"),
    ],
)
def refuses_what_cannot_be_meant(instead: str, wanted: str) -> None:
    with pytest.raises(UsageFault) as caught:
        _plan(f"{HEAD}    instead: {instead}\n", 90_000)
    assert wanted in str(caught.value)


def refuses_the_white_papers_addresses_for_what_does_not_have_them() -> None:
    text = HEAD.replace("huge pages: 1 GiB", "family: ipv6, addresses: white-paper").replace("64", "128")
    with pytest.raises(UsageFault, match="the addresses of the white paper are of IPv4: leave 'family' out"):
        _plan(text, 90_000)


def measures_the_white_papers_flows_with_a_table_of_them() -> None:
    for available_mib, most in ((90_000, 1 << 24), (4000, 1 << 23), (3000, 1 << 22)):
        plan = planned(read_named("white-paper", VOCABULARY), Machine(n_cores=2, available_mib=available_mib), "now")
        case = next(case for case in plan.cases if case.key == "1.8")
        assert {job.traffic.flows for job in case.jobs} == {20_000, 200_000, 1_000_000, most}
        assert {(job.setup.dut.kind, job.traffic.addresses) for job in case.jobs} == {("dl3d", "white-paper")}
        assert all(job.setup.dut.has_flow_table for job in case.jobs)
        assert [one.instead for one in case.left_out] == ([] if most == 1 << 24 else [{"flows": f"2x{most}"}])


def says_why_flows_in_a_guest_are_not_measured() -> None:
    for n_virtual_functions, wanted in ((0, "a NIC with SR-IOV is needed"), (8, "'flow table in a VM' is not set up")):
        machine = Machine(n_cores=48, available_mib=90_000, n_nics=2, n_virtual_functions=n_virtual_functions)
        case = next(
            case for case in planned(read_named("white-paper", VOCABULARY), machine, "now").cases if case.key == "2.7"
        )
        assert not case.jobs
        assert case.reason
        assert wanted in case.reason.en
