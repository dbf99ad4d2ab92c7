"""Tables: numbers to the right, each column's unit under its heading."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.report.markup import Content, add, tag
from dl3.report.words import Words


@dataclass(frozen=True)
class Column:
    """A column: the key of its heading, its unit, whether numbers stand in it."""

    key: str
    unit: str = ""
    is_number: bool = False


def heading(column: Column, words: Words) -> Element:
    """The head of a column; a unit with a key is translated."""
    unit = words.name("unit", column.unit)
    class_ = "number" if column.is_number else None
    return tag("th", words(f"table.{column.key}"), tag("small", unit) if unit else None, scope="col", class_=class_)


def row_of(columns: Sequence[Column], cells: Sequence[Content], class_: str | None) -> Element:
    """A row; what a cell stands for is told to programs too."""
    found = [
        tag("td", cell, class_="number" if column.is_number else None, data_col=column.key)
        for column, cell in zip(columns, cells, strict=True)
    ]
    return tag("tr", *found, class_=class_)


@dataclass(frozen=True)
class Row:
    """Cells, and a class for rows that look different."""

    cells: Sequence[Content]
    class_: str | None = None


def grid(name: str, columns: Sequence[Column], rows: Iterable[Row], words: Words) -> Element:
    """The whole table; `name` says which one it is."""
    head = tag("thead", tag("tr", *(heading(column, words) for column in columns)))
    body = add(tag("tbody"), [row_of(columns, row.cells, row.class_) for row in rows])
    return tag("div", tag("table", head, body, id=name), class_="table")
