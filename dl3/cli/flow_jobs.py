"""'dl3 flow load' and 'dl3 flow save': jobs of dl3d, followed until they end."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn

from dl3.cli.flow import Json, Socket
from dl3.cli.printing import counted, err, out, print_json
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.flow_replies import FlowJob, FlowJobStarted
from dl3.model.fault import Fault, UsageFault

POLL_S = 0.1
DOING = {"checking": "checking", "applying": "loading", "saving": "saving"}
File = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="File of flows; default: flow.file of dl3d.", show_default=False)
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Start it, and do not wait for its end.")]


def absolute(path: Path | None) -> str | None:
    """The path for dl3d, whose working directory is another."""
    return str(path.absolute()) if path is not None else None


def hint(path: Path | None, fault: Fault) -> str:
    """What to add if dl3d cannot use a file or folder that this process can."""
    is_theirs = any(os.strerror(number) in str(fault) for number in (errno.ENOENT, errno.EACCES, errno.EROFS))
    if path is None or not is_theirs or not (path.exists() or os.access(path.absolute().parent, os.W_OK)):
        return ""
    return "; dl3d opens the file itself, as its own user and in its own mount namespace"


def follow(ask: Callable[[], FlowJob]) -> FlowJob:
    """Wait for the end of the job; a terminal shows how far it is."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[far]}"))
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("starts", total=None, far="")
        while (job := ask()).state == "running":
            doing, far = DOING.get(job.phase or "", "starts"), f"{job.done:,} of {counted(job.of, 'flow')}"
            progress.update(task, description=doing, completed=job.done, total=job.of or None, far=far)
            time.sleep(POLL_S)
    return job


def run(client: Client, start: Callable[[], FlowJobStarted], path: Path | None, wait: bool) -> FlowJob | None:
    """Start a job and follow it. A Fault says why it failed; None: it was not waited for."""
    try:
        started = start()
        if not wait:
            return None
        job = follow(lambda: client.ask(FlowJob, "flows.job"))
        if job.path != started.path:
            raise Fault(
                f"{started.path}: dl3d has begun another load or save meanwhile; 'dl3 show flows' shows the table"
            )
        if job.state != "done":
            raise Fault(job.reason or f"{started.path}: the job ended as '{job.state}'")
    except UsageFault as fault:
        raise UsageFault(f"{fault}{hint(path, fault)}") from fault
    except Fault as fault:
        raise Fault(f"{fault}{hint(path, fault)}") from fault
    return job


def report(job: FlowJob | None, done: str, as_json: bool) -> None:
    """One line; refused flows are a failure."""
    if job is None:
        return
    if as_json:
        print_json(job.model_dump())
    else:
        n_done = job.done - job.refused
        rate = f", {n_done / job.seconds:,.0f} per second" if job.seconds > 1 else ""
        out.print(f"{done}: {counted(n_done, 'flow')} in {job.seconds:.1f} s{rate}", highlight=False)
    if job.refused:
        raise Fault(
            f"{job.path}: {counted(job.refused, 'flow')} refused, the first one is flow {job.first_refused or 0:,} of the "
            f"file: {job.reason or 'no reason given'}"
        )


def load(
    file: File = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the flows of the file instead.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Start new flows with counters of 0.")] = False,
    no_wait: NoWait = False,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Load a file of flows while dl3d forwards.

    Flows that exist get the action of the file. Nothing is applied unless the whole file is valid. Flows whose
    interface or VRF does not exist are refused one by one.

    Example: dl3 flow load /var/lib/dl3/flows
    """
    client, given = Client(socket), {"path": absolute(file), "op": "delete" if delete else None}
    counters = False if reset else None
    job = run(client, lambda: client.ask(FlowJobStarted, "flows.load", counters=counters, **given), file, not no_wait)
    report(job, "deleted" if delete else "loaded", as_json)


def save(
    file: File = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace flow.file also if it could not be loaded whole at start.")
    ] = False,
    no_wait: NoWait = False,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Save all flows with their counters to a file.

    The file gets its name when it is complete.

    Example: dl3 flow save /var/lib/dl3/flows
    """
    client, given = Client(socket), {"path": absolute(file), "force": force or None}
    job = run(client, lambda: client.ask(FlowJobStarted, "flows.save", **given), file, not no_wait)
    report(job, "saved", as_json)
