"""'dl3 subscriber load' and 'dl3 subscriber export': jobs of dl3d, followed until they end."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn

from dl3.cli.printing import counted, err, out, print_json
from dl3.cli.show import Socket
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.subscriber_replies import SubscriberJob, SubscriberJobStarted
from dl3.model.fault import Fault

POLL_S = 0.05
File = Annotated[Path, typer.Argument(metavar="FILE", help="The file; dl3d reads or writes it itself.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def follow(ask: Callable[[], SubscriberJob]) -> SubscriberJob:
    """Wait for the end of the job; a terminal shows how far it is."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[far]}"))
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("starts", total=None, far="")
        while (job := ask()).state == "running":
            far = counted(job.done, "line") if job.of is None else f"{job.done:,} of {counted(job.of, 'subscriber')}"
            progress.update(task, description=job.phase or "starts", completed=job.done, total=job.of, far=far)
            time.sleep(POLL_S)
    return job


def run(client: Client, method: str, done: str, as_json: bool, **params: object) -> None:
    """Start a job and follow it. A Fault says why it failed."""
    started = client.ask(SubscriberJobStarted, method, **params)
    job = follow(lambda: client.ask(SubscriberJob, "subscribers.job"))
    if job.path != started.path:
        raise Fault(
            f"{started.path}: dl3d has begun another load or export meanwhile; 'dl3 show subscribers' shows the result"
        )
    if job.state != "done":
        raise Fault(job.reason or f"{started.path}: the job ended as '{job.state}'")
    if as_json:
        print_json(job.model_dump())
    else:
        out.print(f"{done} in {job.seconds:.2f} s: {counted(job.subscribers, 'subscriber')}", highlight=False)


def load(file: File, socket: Socket = DEFAULT_SOCKET, as_json: Json = False) -> None:
    """Apply all lines of a file, or none of them. A line 'NAME up gold ...' adds or replaces a subscriber.

    Example: dl3 subscriber load /var/lib/dl3/subscribers
    """
    run(Client(socket), "subscribers.load", "loaded", as_json, path=str(file.absolute()))


def export(
    file: File,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file also if it is no export.")] = False,
    socket: Socket = DEFAULT_SOCKET,
    as_json: Json = False,
) -> None:
    """Write all profiles and subscribers with their counters to a file that 'load' reads.

    The file gets its name when it is complete. One that exists is replaced if it is an export.

    Example: dl3 subscriber export /var/lib/dl3/subscribers
    """
    params = {"path": str(file.absolute()), "overwrite": overwrite or None}
    run(Client(socket), "subscribers.export", "exported", as_json, **params)
