"""The command 'dl3 metrics'."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from prometheus_client.exposition import generate_latest

from dl3.control.client import DL3D, DL3GEN
from dl3.metrics.dashboard import dashboard as dashboard_of_all
from dl3.metrics.rules import rules as rules_of_all
from dl3.metrics.server import DEFAULT_ADDRESS, opened, serve
from dl3.metrics.target import Target, Targets
from dl3.model.fault import UsageFault

MOST_SOCKETS = 64


def targets_of(sockets: Sequence[Path], generators: Sequence[Path], timeout_s: float) -> Targets:
    """The programs to read: dl3d's usual socket if none is given."""
    given = [(DL3D, path) for path in sockets] + [(DL3GEN, path) for path in generators]
    if len({path for _, path in given}) < len(given):
        raise UsageFault("a socket is given twice: give each once, dl3d's with --socket and dl3gen's with --generator")
    if len(given) > MOST_SOCKETS:
        raise UsageFault(
            f"{len(given)} sockets are too many: at most {MOST_SOCKETS}; start 'dl3 metrics' more than once"
        )
    return Targets([Target(program, path, timeout_s) for program, path in given or [(DL3D, DL3D.socket)]])


def printed(targets: Targets, is_dashboard: bool, is_rules: bool) -> str:
    """What to print instead of serving."""
    if is_dashboard:
        return json.dumps(dashboard_of_all(), indent=2) + "\n"
    return rules_of_all() if is_rules else generate_latest(targets).decode()


def metrics(
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="Where to serve http, or :PORT for every address.")
    ] = DEFAULT_ADDRESS,
    socket: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help=f"Control socket of a dl3d; may be repeated [default: {DL3D.socket}]."),
    ] = None,
    generator: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="Control socket of a dl3gen; may be repeated.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=60, metavar="SECONDS", help="How long to wait for each program.")
    ] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Print the metrics instead of serving them.")] = False,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Print a dashboard for Grafana.")] = False,
    rules: Annotated[bool, typer.Option("--rules", help="Print alert rules for Prometheus.")] = False,
) -> None:
    """Serve the metrics of running programs to Prometheus; print the dashboard and alert rules that use them.

    Each request reads the control sockets once. A program that does not reply has dl3d_up (dl3gen_up) 0. Exit status: 0 printed, 1 the
    address cannot be used, 2 usage error, 130 after Ctrl-C.

    Example: dl3 metrics --listen 127.0.0.1:9883 --socket /run/dl3d.sock
    """
    if once + dashboard + rules > 1:
        raise UsageFault("--once, --dashboard and --rules each print something else: use one of them")
    targets = targets_of(socket or (), generator or (), timeout)
    if once or dashboard or rules:
        typer.echo(printed(targets, dashboard, rules), nl=False)
    else:
        serve(opened(listen, targets))
