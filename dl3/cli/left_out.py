"""Summarises why a case of a plan, or some of its values, cannot be measured here. Pure."""

import re
from collections.abc import Sequence

from dl3.model.campaign import Case, LeftOut, Plan

HEAD = "not applicable here: "


def reasons(case: Case) -> str:
    """All reasons of a case; those that differ only in numbers are merged, after the values they apply to."""
    if case.reason:
        return case.reason.en.removeprefix(HEAD)
    varied = varied_of(case)
    groups: dict[str, list[LeftOut]] = {}
    for left in case.left_out:
        groups.setdefault(re.sub(r"\d+", "0", left.reason.en), []).append(left)
    found = []
    for some in groups.values():
        names = ", ".join(dict.fromkeys(name_of(left, varied) for left in some))
        found.append(f"{names}: {together([left.reason.en.removeprefix(HEAD) for left in some])}")
    return "; ".join(found)


def not_here(plan: Plan) -> dict[str, str]:
    """What this machine cannot measure of a plan: reasons by case key."""
    found: dict[str, list[str]] = {}
    for case in plan.cases:
        if why := reasons(case):
            found.setdefault(why, []).append(case.key)
    return {", ".join(keys): why for why, keys in found.items()}


def varied_of(case: Case) -> list[str]:
    """The parameters for which the case has more than one value."""
    every = [*(job.parameters for job in case.jobs), *(left.parameters for left in case.left_out)]
    keys = dict.fromkeys(key for one in every for key in one)
    return [key for key in keys if len({one.get(key) for one in every}) > 1]


def name_of(left: LeftOut, varied: Sequence[str]) -> str:
    """'cores 2', or 'unidirectional 4' if several parameters vary; the device if none does."""
    values = [left.parameters[key] for key in varied if key in left.parameters]
    if len(varied) == 1 and values:
        return f"{varied[0]} {values[0]}"
    return " ".join(values) or left.dut


def together(texts: Sequence[str]) -> str:
    """Sentences that differ only in their numbers as one, with the range of each number."""
    parts = zip(*(re.split(r"(\d+)", text) for text in texts), strict=True)
    return "".join(range_of(some) for some in parts)


def range_of(some: Sequence[str]) -> str:
    """The single text, or the range from the lowest to the highest number."""
    if len(set(some)) == 1:
        return some[0]
    numbers = sorted(map(int, some))
    return f"{numbers[0]} to {numbers[-1]}"
