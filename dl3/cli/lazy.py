"""Command groups that import a command's module on first use, and show summaries in full."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

CONTEXT = {"help_option_names": ["-h", "--help"]}


def without_types(command: Any) -> Any:
    """The command, whose help lists arguments without their Python types; choices remain."""
    for param in command.params:
        if param.param_type_name == "argument" and not param.type_descriptor.is_choice:
            param.display_type_rich = lambda ctx: None  # noqa: ARG005
    return command


def single(function: Any, name: str, settings: Mapping[str, Any]) -> Any:
    """A function as a command."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, **settings)(function)
    return without_types(typer.main.get_command(app))


def summary(command: Any) -> str:
    """The first paragraph of a command's help, on one line."""
    return " ".join((command.help or "").split("\n\n")[0].split())


class LazyGroup(TyperGroup):
    """A subclass lists its commands; each belongs to a panel of the help."""

    # name -> ("module:attribute", panel, settings of typer's command())
    sources: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """In help order."""
        return [*self.sources]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """The command, imported now, or None."""
        if cmd_name not in self.sources:
            return None
        if cmd_name not in self.commands:
            source, _, settings = self.sources[cmd_name]
            module, _, attribute = source.partition(":")
            found = getattr(import_module(module), attribute)
            is_group = isinstance(found, typer.Typer)
            made = typer.main.get_command(found) if is_group else single(found, cmd_name, settings)
            made.name = cmd_name
            self.commands[cmd_name] = made
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One list per panel, with full summaries."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            panels.setdefault(self.sources[name][1], []).append((name, summary(self.get_command(ctx, name))))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)
