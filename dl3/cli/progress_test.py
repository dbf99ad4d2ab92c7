"""The bar where there is no terminal."""

from io import StringIO

from rich.console import Console

from dl3.cli.progress import Bar
from dl3.model.fault import Fault


def draws_nothing_and_leaves_no_empty_line_where_there_is_no_terminal() -> None:
    file = StringIO()
    with Bar(Console(file=file)) as bar:
        bar.heard_left("64", 90.0)
        bar.heard_fault("64", Fault("too little"))
        bar.heard_left("64", 30.0)
    assert file.getvalue() == "64-byte frames: too little\n"
