"""Content that several parts of a page have in common is shown once, with the list of what it applies to."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from xml.etree.ElementTree import Element, tostring

from dl3.report.markup import tag
from dl3.report.words import Words

T = TypeVar("T")
MANY = 4  # names that stand in a cell at once


@dataclass(frozen=True)
class Shared(Generic[T]):
    """Something with all that it applies to."""

    of: T
    names: tuple[str, ...]


def grouped(items: Iterable[tuple[str, T]], key: Callable[[T], Hashable]) -> list[Shared[T]]:
    """Equal things together, in the order of the first of each."""
    found: dict[Hashable, Shared[T]] = {}
    for name, item in items:
        old = found.get(key(item), Shared(item, ()))
        found[key(item)] = Shared(old.of, tuple(dict.fromkeys((*old.names, name))))
    return list(found.values())


def is_note(piece: Element) -> bool:
    """Whether it explains a table, and nothing leads to it."""
    return piece.get("class") == "note" and piece.get("id") is None


def text_of(piece: Element) -> str:
    """As it is written."""
    return tostring(piece, encoding="unicode")


def without_equal_notes(
    parts: Sequence[tuple[str, list[Element]]], words: Words
) -> tuple[list[Element], list[list[Element]]]:
    """The notes that several parts have in common, and the parts without them."""
    notes = [(name, piece) for name, pieces in parts for piece in pieces if is_note(piece)]
    common = [one for one in grouped(notes, text_of) if len(one.names) > 1]
    texts = {text_of(one.of) for one in common}
    shown = [tag("p", names_text(one.names, words), *content_of(one.of), class_="note") for one in common]
    return shown, [[piece for piece in pieces if text_of(piece) not in texts] for _, pieces in parts]


def content_of(piece: Element) -> list[Element | str]:
    """What stands in an element."""
    return [" ", piece.text or "", *piece]


def names_text(names: Sequence[str], words: Words) -> Element:
    """'Cases 1.1, 1.2:'."""
    return tag("strong", words("fold.cases", cases=words("list.comma").join(names)))


def names_list(names: Sequence[str], words: Words) -> Element | str:
    """Names in a cell; many of them folded."""
    if len(names) == 1:
        return names[0]
    listed = tag("ul", *(tag("li", name) for name in names))
    if len(names) <= MANY:
        return listed
    return tag("details", tag("summary", words("fold.jobs", n=len(names))), listed, class_="same")


def without_equal_reasons(parts: Sequence[list[Element]]) -> list[list[Element]]:
    """Parts that are only a heading and why there is nothing: of equal ones in a row the last one says it for all."""

    def reason(pieces: Sequence[Element]) -> str | None:
        return text_of(pieces[1]) if len(pieces) == 2 and pieces[1].get("class") == "absent" else None

    following = [*(reason(pieces) for pieces in parts[1:]), None][: len(parts)]
    return [
        pieces[:1] if (why := reason(pieces)) is not None and why == after else pieces
        for pieces, after in zip(parts, following, strict=True)
    ]
