"""The commands under 'dl3 host': findings about a machine, its tuning, and what applies it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dl3.cli.lazy import LazyGroup
from dl3.cli.outlet import judging
from dl3.cli.printing import counted, out, print_json, table
from dl3.host.facts.read import Facts, read
from dl3.host.finding import Finding, findings_of
from dl3.host.recording import open_record, record, write
from dl3.host.tree import FolderTree, Tree

LOOK, CHANGE = "Look", "Change"
FOUND = 1

Recorded = Annotated[
    Path | None,
    typer.Option("--for", metavar="RECORD", help="A record of 'dl3 host record' instead of this machine."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Hosted(LazyGroup):
    """The commands of 'dl3 host'."""

    sources: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
        "plan": ("dl3.cli.tuning:plan", LOOK, {}),
        "vf": ("dl3.cli.vf:vf_command", LOOK, {}),
        "verify": ("dl3.cli.tuning:verify_machine", LOOK, {}),
        "record": ("dl3.cli.host:record_machine", LOOK, {}),
        "jitter": ("dl3.cli.jitter:jitter_command", LOOK, {}),
        "guest": ("dl3.cli.guest:guest_command", LOOK, {}),
        "apply": ("dl3.cli.tuning:apply", CHANGE, {}),
        "confirm": ("dl3.cli.tuning:confirm", CHANGE, {}),
        "undo": ("dl3.cli.tuning:undo", CHANGE, {}),
    }


app = typer.Typer(
    cls=Hosted,
    help="Find what keeps this machine from forwarding without loss, worst first. Changes nothing.\n\n"
    "Exit status: 0 nothing to do, 1 findings, 2 the facts could not be read.\n\n"
    "Example: dl3 host --for record.tar.gz",
    invoke_without_command=True,
    rich_markup_mode=None,
    add_completion=False,
)


def tree_of(recorded: Path | None) -> Tree:
    """This machine, or a record."""
    return FolderTree() if recorded is None else open_record(recorded)


def summary(facts: Facts) -> str:
    """The machine in one line."""
    cpus = facts.cpus
    n_cores = sum(len(cpus.cores_of(node)) for node in cpus.nodes)
    parts = (
        facts.system.product,
        cpus.model,
        f"{counted(len(cpus.nodes), 'node')}, {counted(n_cores, 'core')}, {counted(len(cpus.online), 'thread')}",
        counted(len(facts.nics), "network card"),
        f"Linux {facts.kernel.release}",
        facts.system.distribution,
    )
    return "; ".join(part for part in parts if part)


def show(facts: Facts, findings: tuple[Finding, ...]) -> None:
    """The findings as a table, then those that are only notes."""
    out.print(summary(facts), highlight=False, soft_wrap=True)
    faults = [one for one in findings if one.is_fault]
    notes = [one for one in findings if not one.is_fault]
    if faults:
        rows = [(one.severity, one.what, one.why, one.remedy, one.source) for one in faults]
        out.print()
        out.print(table("", ("severity", "~what", "~why", "~remedy", "~source"), rows))
    if notes:
        out.print()
        out.print(table("", ("~notes", "~why", "~source"), [(one.what, one.why, one.source) for one in notes]))
    out.print()
    said = f"{counted(len(faults), 'finding')}; 'dl3 host plan' shows what to change" if faults else "nothing to do"
    out.print(said, highlight=False, soft_wrap=True)


@app.callback()
def host(ctx: typer.Context, recorded: Recorded = None, as_json: Json = False) -> None:
    """Without a command: the findings."""
    if ctx.invoked_subcommand:
        return
    with judging():
        facts = read(tree_of(recorded))
        findings = findings_of(facts)
        if as_json:
            shown = {"facts_digest": facts.digest(), "machine": summary(facts)}
            print_json({**shown, "findings": [one.model_dump(mode="json") for one in findings]})
        else:
            show(facts, findings)
    if any(one.is_fault for one in findings):
        raise typer.Exit(FOUND)


def record_machine(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive to write, like machine.tar.gz.")],
    as_json: Json = False,
) -> None:
    """Write what the findings are computed from into an archive, for a bug report or to plan elsewhere.

    Addresses, host names and serial numbers are replaced, and nothing else is read: look at it with 'tar tf FILE'.

    Example: dl3 host record machine.tar.gz
    """
    n_files = write(record(FolderTree()), file)
    if as_json:
        print_json({"record": str(file), "files": n_files})
    else:
        out.print(f"{file}: {counted(n_files, 'file')}", highlight=False, soft_wrap=True)
