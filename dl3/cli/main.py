"""The command: its verbs, and the one place where a fault becomes a sentence and an exit code."""

import errno
import os
import signal
import sys
from types import FrameType

import typer

from dl3 import VERSION
from dl3.cli import bench, explain, forwarder, linux, report, show, streams
from dl3.cli.printing import err
from dl3.model.fault import Fault, UsageFault

UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE)

app = typer.Typer(
    help="Run, show and measure dl3d, the layer-3 forwarder.\n\nExample: dl3 show ports --watch",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (streams.streams, linux.twins, linux.classes, linux.mirror, linux.unsupported, forwarder.route):
    show.app.command()(command)
app.add_typer(show.app, name="show")
app.add_typer(bench.app, name="bench")
app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})(forwarder.run)
app.command()(forwarder.route)
app.command()(forwarder.reload)
app.command()(linux.verify)
app.command()(report.report)
app.command()(explain.explain)


@app.command()
def version() -> None:
    """Print the version.

    Example: dl3 version
    """
    typer.echo(VERSION)


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """SIGTERM ends like Ctrl-C; a second one does not disturb the clean-up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def obey() -> None:
    """Do what was asked for; what was printed is out, or complained about, before the command leaves."""
    try:
        try:
            app(prog_name="dl3")
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in UNWRITTEN:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left would fail again at the exit
        if error.errno == errno.EPIPE:
            sys.exit(1)  # a reader that left hears nothing
        what = f"not all could be written: {error.strerror}"
        raise Fault(f"{what}; make room, or send standard output elsewhere") from error


def main() -> None:
    """Exit codes: 0 done, 1 failed, 2 asked for something that cannot be, 130 after Ctrl-C."""
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        obey()
    except Fault as fault:
        err.print(f"dl3: {fault}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(fault, UsageFault) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
