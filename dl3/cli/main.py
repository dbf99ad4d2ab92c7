"""The command `dl3`: its commands, and the one place where a fault becomes a message and an exit status."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer._completion_classes import completion_init

from dl3 import VERSION
from dl3.cli.lazy import CONTEXT, LazyGroup
from dl3.host.interrupts import take
from dl3.model.fault import Fault, UsageFault

FORWARDER, MEASURE, MACHINE, OTHER = "Forwarder", "Measure", "Machine", "Other"
RUN: Mapping[str, Any] = {"context_settings": {"allow_interspersed_args": False, "ignore_unknown_options": True}}

ALIAS: Mapping[str, Any] = {"help": "Alias of 'dl3 show route'.\n\nExample: dl3 route 203.0.113.7"}


class Commands(LazyGroup):
    """The commands of dl3."""

    sources: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
        "run": ("dl3.cli.forwarder:run", FORWARDER, RUN),
        "show": ("dl3.cli.show:app", FORWARDER, {}),
        "route": ("dl3.cli.forwarder:route", FORWARDER, ALIAS),
        "flow": ("dl3.cli.flow:app", FORWARDER, {}),
        "acl": ("dl3.cli.acl:app", FORWARDER, {}),
        "subscriber": ("dl3.cli.subscriber:app", FORWARDER, {}),
        "port": ("dl3.cli.ports:app", FORWARDER, {}),
        "balance": ("dl3.cli.balance:balance", FORWARDER, {}),
        "reload": ("dl3.cli.forwarder:reload", FORWARDER, {}),
        "verify": ("dl3.cli.linux:verify", FORWARDER, {}),
        "metrics": ("dl3.cli.metrics:metrics", FORWARDER, {}),
        "export": ("dl3.cli.export:app", FORWARDER, {}),
        "capture": ("dl3.cli.capture:capture", FORWARDER, {}),
        "trace": ("dl3.cli.trace:trace", FORWARDER, {}),
        "call": ("dl3.cli.call:call", FORWARDER, {}),
        "bench": ("dl3.cli.bench:app", MEASURE, {}),
        "lab": ("dl3.cli.lab:app", MEASURE, {}),
        "report": ("dl3.cli.report:report", MEASURE, {}),
        "explain": ("dl3.cli.explain:explain", MEASURE, {}),
        "host": ("dl3.cli.host:app", MACHINE, {}),
        "completion": ("dl3.cli.call:completion", OTHER, {}),
        "version": ("dl3.cli.call:version", OTHER, {}),
    }


app = typer.Typer(
    cls=Commands,
    help="Run, inspect and benchmark dl3d, a layer-3 forwarder.\n\n"
    "Exit status: 0 success, 1 failure, 2 usage error, 130 after Ctrl-C; verify, report and host have their own.\n\n"
    "Example: dl3 show ports --watch",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


def print_version(is_asked: bool) -> None:
    """Print the version and exit."""
    if is_asked:
        typer.echo(f"dl3 {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of dl3 itself."""


def main() -> None:
    """Exit statuses: 0 done, 1 failed, 2 wrong usage, 130 after Ctrl-C."""
    from dl3.cli.outlet import written

    take()
    completion_init()
    try:
        with written():
            app(prog_name="dl3")
    except Fault as fault:
        from dl3.cli.printing import err

        err.print(f"dl3: {fault}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(fault, UsageFault) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
