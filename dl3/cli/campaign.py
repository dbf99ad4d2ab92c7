"""The commands 'dl3 bench run' and 'dl3 bench campaigns'."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from dl3.bench.campaign import Conductor
from dl3.bench.lacking import lacking_facts
from dl3.bench.machine import read_machine
from dl3.bench.past import Past, look_into, read_past
from dl3.bench.workplace import BUILD
from dl3.campaign.budget_text import BUDGET_WANTED, seconds_of
from dl3.campaign.duration import job_s, total_s
from dl3.campaign.plan import jobs_of, planned
from dl3.campaign.reader import Campaign
from dl3.campaign.shipped import shipped
from dl3.cli import given
from dl3.cli.at import At, campaign_there, refuse_moved
from dl3.cli.campaign_bar import CampaignBar
from dl3.cli.campaign_file import read_campaign
from dl3.cli.campaign_table import flow_sentences, results
from dl3.cli.left_out import HEAD, not_here, reasons
from dl3.cli.place import say
from dl3.cli.printing import counted, out, print_json, table
from dl3.cli.progress import span
from dl3.cli.sources import show_sources
from dl3.host.root import need_root
from dl3.model.campaign import Case, Plan
from dl3.model.fault import Fault, UsageFault
from dl3.record.facts import collect
from dl3.record.journal import append, now
from dl3.record.reader import read
from dl3.record.spare import kept

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Which = Annotated[
    str, typer.Argument(metavar="FILE|NAME", help="Campaign file (YAML), or a name listed by 'dl3 bench campaigns'.")
]
RecordFile = Annotated[
    Path | None,
    typer.Option("--record", callback=given.in_folder, metavar="FILE", help="Record to continue, or to create."),
]
Budget = Annotated[
    str | None, typer.Option(metavar="TIME", help="Time budget instead of that in the file: 90s, 20m, 1h30m.")
]
Sources = Annotated[
    bool, typer.Option("--sources", help="List the published measurements and which case repeats each.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan, or what is missing in --record, and exit.")]
Check = Annotated[bool, typer.Option("--check", help="Check the file and exit.")]

PLAN_COLUMNS = ("case", "~title", "devices", ">jobs", "frames", "trial length", "duration", "~not applicable here")


def budget_of(text: str | None) -> float:
    """The budget in seconds; 0 if none."""
    if text is None:
        return 0.0
    try:
        return seconds_of(text)
    except ValueError as error:
        raise UsageFault(f"--budget '{text}': expected {BUDGET_WANTED}") from error


def campaigns(as_json: Json = False, sources: Sources = False) -> None:
    """List the built-in campaigns, or the published measurements that they repeat.

    \b
    Example: dl3 bench campaigns
    Example: dl3 bench campaigns --sources
    """
    found = [read_campaign(path.stem) for path in shipped()]
    if sources:
        show_sources([plan_of(one, 0) for one in found], as_json)
        return
    rows = [(one.written.name, len(one.written.cases), one.written.title.en, str(one.path)) for one in found]
    if as_json:
        print_json([dict(zip(("name", "cases", "title", "path"), row, strict=True)) for row in rows])
        return
    out.print(table("", ("name", ">cases", "title", "~file"), rows))


def plan_of(campaign: Campaign, budget_s: float) -> Plan:
    """The plan for this machine in its current state."""
    plan = planned(campaign, read_machine(dut.spec() for dut in campaign.written.duts), now(), budget_s)
    return plan.model_copy(update={"facts": collect(BUILD).model_dump() | lacking_facts()})


def plan_row(case: Case) -> tuple[object, ...]:
    """One case."""
    seconds = sorted({job.effort.seconds for job in case.jobs})
    lasting = f"{seconds[0]:g} s" if len(seconds) == 1 else f"{seconds[0]:g} to {seconds[-1]:g} s" if seconds else None
    devices = ",".join(dict.fromkeys(job.setup.dut.name for job in case.jobs)) or None
    frames = ",".join(dict.fromkeys(job.frame for job in case.jobs)) or None
    about = span(sum(map(job_s, case.jobs))) if case.jobs else None
    return case.key, case.title.en, devices, len(case.jobs), frames, lasting, about, reasons(case)


def show_plan(plan: Plan, as_json: bool) -> None:
    """The table, and the jobs removed by a budget."""
    if as_json:
        print_json(plan.model_dump(exclude={"source"}))
        return
    out.print(table("", PLAN_COLUMNS, [plan_row(case) for case in plan.cases]))
    for text in plan.shortened:
        say_out(f"shortened: {text.en}")
    for text in plan.deviations:
        say_out(f"deviation: {text.en}")
    say_out(f"{plan.name}: {counted(len(jobs_of(plan)), 'job')} in about {span(plan.seconds)}")


def say_out(text: str) -> None:
    """One line on standard output."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def new_record(name: str, at: str) -> Path:
    """A new file for this campaign, in the build or in the current folder."""
    folder = BUILD / "records" if BUILD.is_dir() else Path.cwd()
    return folder / f"{name}-{at[:19].replace(':', '')}.jsonl"


def again(which: str, record: Path) -> str:
    """The command that continues the campaign."""
    return f"continue with: dl3 bench run {which} --record {record}"


def conducted(campaign: Campaign, which: str, record: Path, budget_s: float) -> Conductor:
    """Run all remaining jobs, and tell the user how to continue if interrupted."""
    whole = plan_of(campaign, 0)
    if any(job.setup.dut.kind != "external" for job in jobs_of(whole)):
        need_root("a device that is started here")
    planned_now = (
        None if look_into(record, campaign.source) else plan_of(campaign, budget_s)
    )  # before a file is created
    with kept(record):
        past = read_past(record, campaign.source)
        plan = past.plan if past else planned_now or plan_of(campaign, budget_s)
        if past:
            refuse_moved(record, past, whole)
        else:
            append(record, plan)
        bar = CampaignBar(len(jobs_of(plan)))
        conductor = Conductor(plan, record, listener=bar, past=past, budget_s=budget_s, whole=whole)
        for text in before(conductor):
            say(text)
        try:
            with bar:
                conductor.run()
        except BaseException:
            say(f"stopped; all results so far are in {record}; {again(which, record)}")
            raise
    return conductor


def before(conductor: Conductor) -> Iterator[str]:
    """What is printed before the first measurement, one line each."""
    plan, seconds = conductor.plan, total_s(conductor.left())
    if conductor.past:
        plan = conductor.rest()
        seconds = plan.seconds
        yield going_on(conductor.record, conductor.past, plan)
    yield f"{plan.name}: {counted(len(jobs_of(plan)), 'job')}, about {span(seconds)}; record: {conductor.record}"
    yield from limits_of(plan)


def limits_of(plan: Plan) -> Iterator[str]:
    """What will not be measured, or less accurately, one line each."""
    yield from (f"{keys}: {HEAD}{why}" for keys, why in not_here(plan).items())
    yield from (f"shortened: {text.en}" for text in plan.shortened)


def rest_of(campaign: Campaign, record: Path | None, budget_s: float) -> Plan:
    """What the command would measure: everything, or what a record is missing. The record is not changed."""
    past = look_into(record, campaign.source) if record else None
    if not record or not past:
        return plan_of(campaign, budget_s)
    whole = plan_of(campaign, 0)
    refuse_moved(record, past, whole)
    rest = Conductor(past.plan, record, past=past, budget_s=budget_s, whole=whole).rest()
    say(going_on(record, past, rest))
    return rest


def going_on(record: Path, past: Past, rest: Plan) -> str:
    """How much the record has, and what is measured now."""
    planned_then = {job.key for job in jobs_of(past.plan)}
    n_done, n_back = len(planned_then & past.done), sum(1 for job in jobs_of(rest) if job.key not in planned_then)
    parts = ["continuing with the rest"] if n_done < len(planned_then) else []
    if n_back:
        parts.append(f"there is time for {counted(n_back, 'job')} that an earlier budget excluded")
    what = "; ".join(parts) or "nothing left to do"
    return f"{record} has {n_done} of {counted(len(planned_then), 'job')}: {what}"


def finish(conductor: Conductor, which: str, as_json: bool) -> None:
    """Print the results and the exit status."""
    rows = results(conductor.record)
    if as_json:
        skipped = [{"job": key, "reason": reason} for key, reason in conductor.failed.items()]
        absent = [{"cases": keys, "reason": why} for keys, why in not_here(conductor.plan).items()]
        reported = {"results": [vars(row) for row in rows], "skipped": skipped, "not_applicable": absent}
        print_json({"record": str(conductor.record), **reported})
    else:
        columns = ("case", "device", "~parameters", "test", "frame", "~result")
        cells: Sequence[Sequence[object]] = [tuple(vars(row).values())[:6] for row in rows]
        out.print(table("", columns, cells))
    for text in flow_sentences(read(conductor.record)):
        say(text)
    say(f"recorded in {conductor.record}; create a report with: dl3 report {conductor.record}")
    if not jobs_of(conductor.plan):
        raise Fault(f"no part of {conductor.plan.name} can be measured here, see above")
    if conductor.failed:
        n, jobs = len(conductor.failed), counted(len(conductor.failed) + len(conductor.done), "job")
        raise Fault(f"{n} of {jobs} produced no result, see above; {again(which, conductor.record)}")


def make(campaign: Campaign, words: str, record: Path | None, budget_s: float, as_json: bool) -> None:
    """Measure, and show the results; `words` name the campaign for the command that continues it."""
    path = record or new_record(campaign.written.name, now())
    finish(conducted(campaign, words, path, budget_s), words, as_json)


def show_check(campaign: Campaign, as_json: bool) -> None:
    """Report that the file is valid."""
    path, n = str(campaign.path), len(campaign.written.cases)
    print_json({"path": path, "cases": n}) if as_json else say_out(f"{path}: {counted(n, 'case')}, valid")


def run(
    which: Which,
    record: RecordFile = None,
    budget: Budget = None,
    at: At = "",
    dry_run: DryRun = False,
    check: Check = False,
    as_json: Json = False,
) -> None:
    """Run a campaign from a file: devices x parameters x tests, with all results in one record.

    A campaign consists of cases. In a case, each combination of device, parameter values, test and frame size is a job.
    Jobs that this machine cannot run are reported as not applicable, with the reason. An interrupted campaign is continued
    with --record. With --budget fewer or shorter jobs run, and the report lists the difference.

    Exit status: 0 all applicable jobs were measured; 1 a job gave no result, nothing can be measured, or the record cannot
    be written; 2 the file or an option is invalid; 130 after Ctrl-C.

    \b
    Example: dl3 bench run smoke
    Example: dl3 bench run white-paper --budget 20m --dry-run
    Example: dl3 bench run mine.yaml --at ssh://admin@192.0.2.7 --record mine.jsonl
    """
    campaign = campaign_there(read_campaign(which), at)
    budget_s = budget_of(campaign.written.budget if budget is None else budget)
    if check:
        show_check(campaign, as_json)
    elif dry_run:
        show_plan(rest_of(campaign, record, budget_s), as_json)
    else:
        make(campaign, f"{which} --at {at}" if at else which, record, budget_s, as_json)
