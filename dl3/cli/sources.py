"""The list of published measurements, and the case of a built-in campaign that repeats each on this machine."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from dl3.cli.left_out import reasons
from dl3.cli.printing import out, print_json, table
from dl3.model.campaign import Case, Plan
from dl3.report.lab_beside import SOURCES as BESIDE
from dl3.report.lab_story import SOURCE as KVM_REPORT
from dl3.report.published import SOURCES, rows_for
from dl3.report.published import table as published

COLUMNS = ("source", "case", "~published", ">figures", "repeated by", "~not applicable here")
NONE = "no campaign repeats it"
LABS = {**BESIDE, KVM_REPORT: (KVM_REPORT,)}  # the published cases that each lab repeats


@dataclass(frozen=True)
class Measurement:
    """One case of a source: the number or the table it has there, or its scenario if it has none."""

    source: str  # as in `published` of a campaign
    case: str
    title: str
    figures: int
    repeated_by: tuple[str, ...]  # 'white-paper 1.1': campaign and case, or a lab
    not_here: str  # why this machine, or no campaign, repeats it; '': it is repeated


def repeating(plans: Sequence[Plan], name: str) -> list[tuple[Plan, Case]]:
    """The cases that are drawn beside a published case, or beside all of its source."""
    return [(plan, case) for plan in plans for case in plan.cases if {name, name.split(" ")[0]} & {*case.published}]


def labs_of(name: str) -> list[str]:
    """The labs that repeat a published case."""
    return [f"lab {lab}" for lab, names in LABS.items() if {name, name.split(" ")[0]} & {*names}]


def title_of(source: str, scenario: str, variable: str) -> str:
    """What was measured and what was varied."""
    return f"{source}: {scenario}" + (f", by {variable}" if variable else "")


def measurements(plans: Sequence[Plan]) -> Iterator[Measurement]:
    """All cases of all sources, in the order of the table of published results."""
    for source, begin in SOURCES.items():
        rows = [row for row in published() if row.source.startswith(begin)]
        for case in dict.fromkeys(row.case or row.scenario for row in rows):
            name = f"{source} {case}"
            some, found = rows_for(name), repeating(plans, name)
            labs = labs_of(name)
            runs = labs or any(case.jobs for _, case in found)
            why = "" if runs else "; ".join(dict.fromkeys(reasons(case) for _, case in found)) or NONE
            title = title_of(some[0].source, some[0].scenario, some[0].variable)
            by = [*(f"{plan.name} {case.key}" for plan, case in found), *labs]
            yield Measurement(source, case, title, len(some), tuple(by), why)


def show_sources(plans: Sequence[Plan], as_json: bool) -> None:
    """The list as a table or as JSON."""
    found = list(measurements(plans))
    if as_json:
        print_json([asdict(one) for one in found])
        return
    rows = [(m.source, m.case, m.title, m.figures, ", ".join(m.repeated_by) or None, m.not_here or None) for m in found]
    out.print(table("", COLUMNS, rows))
