"""How results become text: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table

PIPE_COLUMNS = 200  # where no terminal says how wide it is

# What is printed is never a language of its own: ':a:' is a piece of an IPv6 address, '[b]' one of a name.
out = Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS, markup=False, emoji=False)
err = Console(stderr=True, markup=False, emoji=False)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table; a column whose name begins with '>' stands right, one with '~' may be folded."""
    made = Table(title=title or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        is_number, may_fold = column.startswith(">"), column.startswith("~")
        justify: Literal["left", "right"] = "right" if is_number else "left"
        made.add_column(column.lstrip(">~"), justify=justify, overflow="fold", no_wrap=not may_fold)
    for row in rows:
        made.add_row(*(text(cell) for cell in row))
    return made


def counted(n: int, word: str) -> str:
    """'1 job', '2 jobs'."""
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def text(value: object) -> str:
    """A cell: whole numbers with thin groups, yes or no, nothing for what is not known."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)
