"""How results become text: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

out = Console(soft_wrap=False)
err = Console(stderr=True)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table; a column whose name begins with '>' stands right."""
    made = Table(title=title or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        is_number = column.startswith(">")
        made.add_column(column.lstrip(">"), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        made.add_row(*(text(cell) for cell in row))
    return made


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
