"""Formats results: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

PIPE_COLUMNS = 200  # if no terminal gives a width
FOLDED = 20  # minimum width of a column that may be folded
NARROW = 12  # the same if headings are folded as well
GAP = 2  # between two columns
LEFT: Literal["left"] = "left"
RIGHT: Literal["right"] = "right"

# Output is never interpreted as markup: ':a:' is part of an IPv6 address, '[b]' part of a name.
out = Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS, markup=False, emoji=False)
err = Console(stderr=True, markup=False, emoji=False)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


class Fitted:
    """A table if it fits; otherwise each row as a list of its own, so that nothing is truncated."""

    def __init__(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        self.title, self.marked = title, columns
        self.rows = [[text(cell) for cell in row] for row in rows]

    def widths(self, names: Sequence[str], folded: int) -> list[int]:
        """The width of each column, with at least `folded` for one that may be folded."""
        found = []
        for n, (column, name) in enumerate(zip(self.marked, names, strict=True)):
            cells = max((cell_len(row[n]) for row in self.rows), default=0)
            cells = min(cells, folded) if column.startswith("~") else cells
            found.append(max(cells, *(cell_len(line) for line in name.split("\n"))))
        return found

    def made(self, names: Sequence[str], widths: Sequence[int]) -> Table:
        """As a table."""
        made = Table(title=self.title or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
        for column, name, width in zip(self.marked, names, widths, strict=True):
            justify = RIGHT if column.startswith(">") else LEFT
            may_fold = column.startswith("~")
            made.add_column(
                name, justify=justify, overflow="fold", no_wrap=not may_fold, min_width=None if may_fold else width
            )
        for row in self.rows:
            made.add_row(*row)
        return made

    def listed(self, names: Sequence[str], row: Sequence[str]) -> Table:
        """One row as a list."""
        listed = Table(show_header=False, box=None, pad_edge=False)
        listed.add_column(style="bold", no_wrap=True)
        listed.add_column(overflow="fold")
        for name, cell in zip(names, row, strict=True):
            listed.add_row(name, cell)
        return listed

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        names = [column.lstrip(">~") for column in self.marked]
        for headings, folded in ((names, FOLDED), ([name.replace(" ", "\n") for name in names], NARROW)):
            widths = self.widths(headings, folded)
            if sum(widths) + GAP * (len(widths) - 1) <= options.max_width:
                yield self.made(headings, widths)
                return
        yield from [self.title] if self.title else []
        for n, row in enumerate(self.rows):
            yield from [""] if n else []
            yield self.listed(names, row)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Fitted:
    """A table; a column whose name begins with '>' is right-aligned, one with '~' may be folded."""
    return Fitted(title, columns, rows)


def counted(n: int, word: str) -> str:
    """'1 job', '2 jobs'."""
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def text(value: object) -> str:
    """A cell: integers with thousands separators, yes or no, empty if unknown."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)
