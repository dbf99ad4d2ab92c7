"""The command dl3 host jitter."""

import os
from typing import Annotated

import typer

from dl3.cli.host import FOUND, Json
from dl3.cli.outlet import judging
from dl3.cli.printing import counted, out, print_json, table
from dl3.host.cores import listed, read_list
from dl3.host.facts.cpus import CPUS, list_in
from dl3.host.jitter.gaps import RINGS, UNKNOWN, Cause, Jitter, causes_of
from dl3.host.jitter.measure import measure
from dl3.host.tree import FolderTree
from dl3.model.fault import UsageFault

N_CAUSES = 8  # shown for each core
SMALL, LARGE = RINGS


def cores_from(text: str | None) -> tuple[int, ...]:
    """Those of the option; default: isolated cores, or else all but the first that this program may use."""
    usable = os.sched_getaffinity(0)
    isolated = list_in(FolderTree(), f"{CPUS}/isolated")
    if text is None:
        return tuple(sorted(isolated)) or tuple(sorted(usable))[1:] or tuple(sorted(usable))
    try:
        cores = tuple(read_list(text))
    except ValueError as error:
        raise UsageFault(f"'{text}' is no list of cores: expected one like 2-5,8") from error
    online = list_in(FolderTree(), f"{CPUS}/online") or usable
    absent = sorted(set(cores) - online)
    if absent or not cores:
        raise UsageFault(
            f"this machine has no core {listed(absent) or 'in an empty list'}: its cores are {listed(online)}"
        )
    return cores


def cause_row(one: Cause) -> tuple[object, ...]:
    """One row."""
    kind = f" ({one.kind})" if one.kind else ""
    return one.core, f"{one.who}{kind}", one.n, one.longest_us, one.total_us, one.lost[SMALL], one.lost[LARGE]


def shown_causes(jitter: Jitter) -> list[Cause]:
    """The most expensive ones of each core."""
    found: list[Cause] = []
    for core in jitter.cores:
        found += [one for one in causes_of(jitter) if one.core == core.core][:N_CAUSES]
    return found


def notes(jitter: Jitter) -> list[str]:
    """What else a reader must know."""
    found = [f"core {core}: the hypervisor took {ms:,.0f} ms" for core, ms in sorted(jitter.stolen_ms.items())]
    if any(one.who == UNKNOWN for one in causes_of(jitter)):
        found.append("gaps of unknown cause: firmware (SMI), the hypervisor, or what the kernel does not trace")
    kept = sum(len(one.gaps) for one in jitter.cores)
    n = sum(one.n for one in jitter.cores)
    if kept < n:
        found.append(f"only the first {kept:,} of {n:,} gaps are counted as lost frames: choose a higher --least")
    return [*found, *(f"not available: {one}" for one in jitter.missing)]


def show(jitter: Jitter) -> None:
    """Cores, then causes."""
    lost = (f">lost, ring {SMALL:,}", f">lost, ring {LARGE:,}")
    rows = [
        (one.core, f"{one.seconds:.1f}", one.n, one.longest_us, one.lost(SMALL), one.lost(LARGE))
        for one in jitter.cores
    ]
    out.print(table("", (">core", ">seconds", ">gaps", ">longest, us", *lost), rows))
    causes = [cause_row(one) for one in shown_causes(jitter)]
    if causes:
        out.print(table("", (">core", "~cause", ">gaps", ">longest, us", ">total, us", *lost), causes))
    out.print(
        f"gaps of {jitter.least_us:g} us or more; frames of 64 bytes at 10 Gbit/s, one each 67.2 ns", highlight=False
    )
    for note in notes(jitter):
        out.print(note, highlight=False, soft_wrap=True)
    n_lost = jitter.lost(LARGE)
    said = (
        f"{counted(n_lost, 'frame')} would have been lost with rings of {LARGE:,}"
        if n_lost
        else "no frame would have been lost"
    )
    out.print(f"{said} while the cores were measured" if n_lost else f"{said} with rings of {LARGE:,}", highlight=False)


def jitter_command(
    cores: Annotated[
        str | None,
        typer.Option(
            "--cores", metavar="LIST", help="Cores, like 2-5,8. Default: isolated ones, or all but the first."
        ),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, max=600.0, help="How long to measure.")] = 5.0,
    least: Annotated[
        float, typer.Option("--least", min=1.0, metavar="US", help="Shortest gap that counts, in us.")
    ] = 5.0,
    as_json: Json = False,
) -> None:
    """Measure gaps on cores, as frames that a worker would lose, and name their causes. Changes nothing.

    A program spins on each core at normal priority, as a worker does. As root, the kernel's trace ring tells what ran
    instead. Exits with status 1 if frames would be lost with rings of 2,048 descriptors.

    Example: dl3 host jitter --cores 2-3 --seconds 10
    """
    with judging():
        found = measure(cores_from(cores), seconds, least)
        if as_json:
            causes = [one.model_dump(mode="json") for one in causes_of(found)]
            print_json(
                {**found.model_dump(mode="json", exclude={"cores"}), "cores": core_rows(found), "causes": causes}
            )
        else:
            show(found)
    if found.lost(LARGE):
        raise typer.Exit(FOUND)


def core_rows(jitter: Jitter) -> list[dict[str, object]]:
    """Cores for programs, without each single gap."""
    return [
        {
            "core": one.core,
            "seconds": round(one.seconds, 3),
            "gaps": one.n,
            "longest_us": one.longest_us,
            "lost": {str(ring): one.lost(ring) for ring in RINGS},
        }
        for one in jitter.cores
    ]
