"""Expands cases into jobs: devices x values x frames x tests, as far as the machine can run them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from dl3.campaign.machine import Machine, dut_lacking, lacks, replaced, values_lacking
from dl3.campaign.parameters import THIS_MACHINE
from dl3.campaign.sense import combinations, fields_of, frames_of, parameters_of, rates_of, tests_of
from dl3.campaign.written import WrittenCampaign, WrittenCase, typed
from dl3.model.campaign import Case, DutSpec, Effort, Job, LeftOut, Setup, TestName, Text, Traffic

TESTS = get_args(TestName)


@dataclass(frozen=True)
class Combination:
    """A device with one value of each parameter."""

    dut: DutSpec
    values: dict[str, str]  # all parameters
    shown: dict[str, str]  # the parameters that the case varies, for display
    reason: Text | None  # why it cannot run here
    instead: dict[str, str] = field(default_factory=dict)  # the values that run in its place

    @property
    def fields(self) -> dict[str, Any]:
        """The setup and traffic fields that the values stand for."""
        return fields_of(self.values)


def shown(value: str, name: str, machine: Machine) -> str:
    """Replace 'this machine' by the machine's name."""
    names = {"server": machine.server, "CPU model": machine.cpu_model, "host OS": machine.host_os}
    return (names.get(name) or value) if value == THIS_MACHINE else value


def combined(case: WrittenCase, campaign: WrittenCampaign, machine: Machine) -> Iterator[Combination]:
    """All combinations of a case."""
    for dut in campaign.duts:
        if case.duts is not None and dut.name not in case.duts:
            continue
        parameters = {k: v for k, v in parameters_of(case, campaign).items() if k not in dut.without}
        for values in combinations(parameters):
            one = combination(values, dut.spec(), case, machine)
            others = alternatives(values, case) if one.reason else ()
            found = (combination(other, dut.spec(), case, machine) for other in others)
            other = next((other for other in found if not other.reason), None)
            yield from (one,) if other is None else in_place_of(one, other)


def combination(values: dict[str, str], dut: DutSpec, case: WrittenCase, machine: Machine) -> Combination:
    """A device with these values, and why it cannot run here, if so."""
    own = {name: shown(value, name, machine) for name, value in values.items() if name in case.parameters}
    return Combination(dut, values, own, dut_lacking(machine, dut) or values_lacking(machine, fields_of(values), dut))


def alternatives(values: dict[str, str], case: WrittenCase) -> Iterator[dict[str, str]]:
    """What the case allows in place of these values, in its order of preference."""
    instead = {name: case.instead.get(name, {}).get(value, ()) for name, value in values.items()}
    yield from (
        other for other in combinations({n: (value, *instead[n]) for n, value in values.items()}) if other != values
    )


def in_place_of(one: Combination, other: Combination) -> tuple[Combination, Combination]:
    """The combination that cannot run, which says so, and the one that runs in its place."""
    values = {name: value for name, value in other.shown.items() if value != one.shown[name]}
    reason = replaced(one.reason, values) if one.reason else None
    return replace(one, reason=reason, instead=values), other


def taken(fields: Mapping[str, Any], noun: type[Setup] | type[Traffic]) -> dict[str, Any]:
    """The fields that exist in this type."""
    return {name: value for name, value in fields.items() if name in noun.model_fields}


def effort_of(case: WrittenCase, campaign: WrittenCampaign, frame: str) -> Effort:
    """The effort of a case for frames of a size; its own values override the campaign's defaults."""
    rates = rates_of(case, campaign).get(frame, ())
    return Effort.model_validate({**campaign.defaults.effort.said(), **case.effort.said(), "rates": rates})


def jobs_of(one: Combination, case: WrittenCase, campaign: WrittenCampaign) -> Iterator[Job]:
    """The jobs of a combination: all tests of one frame size after another."""
    setup = Setup(dut=one.dut, **taken(one.fields, Setup))
    streams = typed(list(case.streams or campaign.defaults.streams or ()))
    traffic = Traffic.model_validate({**taken(one.fields, Traffic), "streams": streams})
    words = ", ".join(f"{name}={one.values[name]}" for name in case.parameters if name in one.values)
    for frame in frames_of(case, campaign):
        for test in sorted(set(tests_of(case, campaign)), key=TESTS.index):
            yield Job(
                key="|".join((case.key, one.dut.name, words, test, frame)),
                case=case.key,
                parameters=one.shown,
                setup=setup,
                traffic=traffic,
                test=test,
                frame=frame,
                effort=effort_of(case, campaign, frame),
            )


def expanded(case: WrittenCase, campaign: WrittenCampaign, machine: Machine) -> Case:
    """The case with its jobs, and the reasons for everything this machine cannot run."""
    head = {"key": case.key, "title": case.title.text(), "published": case.published}
    if reason := lacks(machine, case.needs):
        return Case.model_validate({**head, "reason": reason})
    found = list(combined(case, campaign, machine))
    can = [one for one in found if not one.reason]
    left_out = [
        LeftOut(dut=one.dut.name, parameters=one.shown, reason=one.reason, instead=one.instead)
        for one in found
        if one.reason
    ]
    return Case.model_validate(
        {
            **head,
            "jobs": [job for one in can for job in jobs_of(one, case, campaign)],
            "reason": None if can else left_out[0].reason,
            "left_out": left_out if can else (),
        }
    )
