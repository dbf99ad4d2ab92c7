"""Commands that need none of our other modules: calling an RPC method, shell completion, the version."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dl3 import VERSION
from dl3.cli.printing import print_json
from dl3.control.client import DEFAULT_SOCKET, Client
from dl3.control.replies import AnyReply
from dl3.model.fault import UsageFault


def params_of(text: str) -> dict[str, object]:
    """A JSON object, the parameters of an RPC method."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageFault(f"invalid JSON {text!r}: {error}; give an object, such as '{{\"limit\": 10}}'") from error
    if not isinstance(value, dict):
        raise UsageFault(f"the parameters of a method are a JSON object such as '{{\"limit\": 10}}', not {text!r}")
    return value


def call(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="Name of the method; 'help' lists all.")],
    params: Annotated[
        str, typer.Argument(metavar="JSON", help="Parameters of the method as a JSON object.", show_default=False)
    ] = "{}",
    socket: Annotated[
        Path, typer.Option(metavar="PATH", help="Control socket of dl3d or dl3gen.", readable=False)
    ] = DEFAULT_SOCKET,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="How long to wait for the reply.")] = 15.0,
) -> None:
    """Call an RPC method of dl3d or dl3gen and print its result as JSON.

    Example: dl3 call routes '{"limit": 10}'
    """
    given = {key: value for key, value in params_of(params).items() if value is not None}
    print_json(Client(socket, timeout).ask(AnyReply, method, **given).root)


class Shell(StrEnum):
    """Shells with completion."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the completion script of a shell.

    Example: dl3 completion bash > ~/.local/share/bash-completion/completions/dl3
    """
    from typer._completion_shared import get_completion_script

    typer.echo(get_completion_script(prog_name="dl3", complete_var="_DL3_COMPLETE", shell=shell.value))


def version() -> None:
    """Print the version.

    Example: dl3 version
    """
    typer.echo(VERSION)
