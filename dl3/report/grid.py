"""Tables: numbers right-aligned, units below the headings; one click selects a table, and it can be saved as CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from dl3.report.markup import Content, add, data_url, download, tag
from dl3.report.units import NOTHING
from dl3.report.words import Words

MANY = 9  # columns that fit side by side
BYTE_ORDER = "\ufeff"  # lets Excel detect UTF-8
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets interpret as a formula


@dataclass(frozen=True)
class Column:
    """A column: the key of its heading, its unit, whether it holds numbers."""

    key: str
    unit: str = ""
    is_number: bool = False
    is_optional: bool = False  # omitted if no row has a value in it


def heading(column: Column, words: Words) -> Element:
    """The head of a column; a unit with a key is translated."""
    unit = words.name("unit", column.unit)
    class_ = "number" if column.is_number else None
    return tag("th", words(f"table.{column.key}"), tag("small", unit) if unit else None, scope="col", class_=class_)


@dataclass(frozen=True)
class Row:
    """Cells, a class for highlighted rows, and the link target of the row's figures."""

    cells: Sequence[Content]
    class_: str | None = None
    link: str | None = None


def row_of(columns: Sequence[Column], row: Row) -> Element:
    """A row; each cell carries its column key for programs, and each number links to the record."""
    found = []
    for column, cell in zip(columns, row.cells, strict=True):
        is_linked = row.link and (column.is_number or column.key == "lines") and isinstance(cell, str)
        content = tag("a", cell, href=row.link) if is_linked and cell != NOTHING else cell
        found.append(tag("td", content, class_="number" if column.is_number else None, data_col=column.key))
    return tag("tr", *found, class_=row.class_)


def plain(cell: Content) -> str:
    """A cell of a CSV file: numbers without grouping, and no text that a spreadsheet would run as a formula."""
    if isinstance(cell, Element):
        return "; ".join(text for text in cell.itertext() if text.strip())
    text = "" if cell is None or cell == NOTHING else str(cell)
    bare = text.removeprefix("≥ ").removeprefix("≤ ").replace(",", "")
    try:
        float(bare)
    except ValueError:
        return f"'{text}" if text.startswith(FORMULA) else text
    return text.replace(",", "")


def csv_text(columns: Sequence[Column], rows: Iterable[Row], words: Words) -> str:
    """The table as CSV (RFC 4180), its units in the headings."""
    made = io.StringIO()
    writer = csv.writer(made)
    units = [words.name("unit", column.unit) for column in columns]
    heads = [words(f"table.{column.key}") for column in columns]
    writer.writerow([f"{head} ({unit})" if unit else head for head, unit in zip(heads, units, strict=True)])
    writer.writerows([plain(cell) for cell in row.cells] for row in rows)
    return BYTE_ORDER + made.getvalue()


def tools(name: str, text: str, words: Words) -> Element:
    """The actions of a table: select all of it with one click, save it."""
    pick = tag("label", tag("input", type="checkbox", class_="pick", autocomplete="off"), words("tool.pick"))
    return tag("div", pick, download("CSV", f"{name}.csv", data_url("text/csv", text)), class_="tools")


def without_empty(rows: list[Row], columns: Sequence[Column]) -> tuple[list[Row], Sequence[Column]]:
    """Rows and columns without empty optional columns."""
    kept = [
        n
        for n, column in enumerate(columns)
        if not column.is_optional or any(row.cells[n] not in (NOTHING, "") for row in rows)
    ]
    return [replace(row, cells=[row.cells[n] for n in kept]) for row in rows], [columns[n] for n in kept]


def grid(name: str, columns: Sequence[Column], rows: Iterable[Row], words: Words) -> Element:
    """The whole table; `name` identifies it."""
    shown, columns = without_empty(list(rows), columns)
    head = tag("thead", tag("tr", *(heading(column, words) for column in columns)))
    body = add(tag("tbody"), [row_of(columns, row) for row in shown])
    class_ = "wide" if len(columns) > MANY else None
    table = tag("div", tag("table", head, body, id=name, class_=class_), class_="table")
    return tag("div", table, tools(name, csv_text(columns, shown, words), words), class_="block")
