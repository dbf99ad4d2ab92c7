"""The command: its methods, and the one place where a fault becomes a sentence and an exit code."""

import signal
import sys
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup

from dl3 import VERSION
from dl3.cli import explain, forwarder, linux, report, show, streams
from dl3.cli.outlet import written
from dl3.cli.printing import err
from dl3.model.fault import Fault, UsageFault


class Methods(TyperGroup):
    """All methods; 'bench', which needs most of our modules, is loaded when the name is none of the others."""

    def _load_bench(self) -> None:
        if "bench" not in self.commands:
            from dl3.cli import bench

            self.commands["bench"] = typer.main.get_command(bench.app)

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order in which help shows them."""
        self._load_bench()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The method, or None."""
        if cmd_name not in self.commands:
            self._load_bench()
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=Methods,
    help="Run, show and measure dl3d, the layer-3 forwarder.\n\nExample: dl3 show ports --watch",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (streams.streams, linux.taps, linux.classes, linux.mirror, linux.unsupported, forwarder.route):
    show.app.command()(command)
app.add_typer(show.app, name="show")
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


def main() -> None:
    """Exit codes: 0 done, 1 failed, 2 asked for something that cannot be, 130 after Ctrl-C."""
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        with written():
            app(prog_name="dl3")
    except Fault as fault:
        err.print(f"dl3: {fault}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(fault, UsageFault) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
