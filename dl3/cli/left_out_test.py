"""How a plan reports values that this machine cannot measure."""

from dl3.cli.left_out import HEAD, not_here, reasons
from dl3.model.campaign import Case, LeftOut, Plan, Text


def left(reason: str, **parameters: str) -> LeftOut:
    return LeftOut(dut="dl3d", parameters=parameters, reason=Text(en=f"not applicable here: {reason}", zh="此处不适用"))


def case(*some: LeftOut) -> Case:
    title = Text(en="a", zh="a")
    return Case.model_validate({"key": "1", "title": title, "jobs": (), "reason": None, "left_out": some})


def puts_reasons_together_that_differ_in_numbers_alone() -> None:
    wanted = "{} ports are wanted, there are 2"
    some = [left(wanted.format(n), pages="1", way=way, ports=f"{n}") for way in ("one", "both") for n in (4, 12)]
    other = left("two NUMA nodes are needed", pages="1", way="one", ports="2")
    assert reasons(case(*some, other)) == (
        "one 4, one 12, both 4, both 12: 4 to 12 ports are wanted, there are 2; one 2: two NUMA nodes are needed"
    )


def reports_a_reason_once_for_all_cases_that_share_it() -> None:
    absent = [case().model_copy(update={"key": key, "reason": Text(en=f"{HEAD}no NIC", zh="无")}) for key in "ab"]
    partly = case(left("too few", cores="2"), left("too few", cores="4")).model_copy(update={"key": "c"})
    plan = Plan.model_construct(cases=(*absent, partly, case().model_copy(update={"key": "d"})))
    assert not_here(plan) == {"a, b": "no NIC", "c": "cores 2, cores 4: too few"}


def names_the_one_parameter_that_varies_or_the_device() -> None:
    assert reasons(case(left("too few", cores="2"), left("too few", cores="4"))) == "cores 2, cores 4: too few"
    assert reasons(case(left("it is not there"))) == "dl3d: it is not there"
