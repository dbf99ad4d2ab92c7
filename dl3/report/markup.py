"""HTML and SVG as trees: what comes from a record is text or an attribute's value, and can never become markup."""

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

Content = Element | str | int | None
Value = str | int | float | None

# What no HTML page may hold: control characters, halves of surrogate pairs, and what Unicode calls no character.
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def clean(text: str) -> str:
    """The text with a mark in place of each character that no page may hold."""
    return FORBIDDEN.sub("\ufffd", text)


def written(value: str | int | float) -> str:
    """An attribute's value; coordinates to a hundredth of a point."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else clean(str(value))


def tag(name: str, /, *content: Content, **attributes: Value) -> Element:
    """An element; `class_` means class, `text_anchor` means text-anchor, and an attribute that is None is left out."""
    made = Element(name)
    for key, value in attributes.items():
        if value is not None:
            made.set(key.rstrip("_").replace("_", "-"), written(value))
    return add(made, content)


def mark(element: Element, **values: str | float) -> Element:
    """The element with values for programs beside it, in full: data-NAME."""
    for key, value in values.items():
        element.set(f"data-{key}", clean(value) if isinstance(value, str) else repr(value))
    return element


def add(parent: Element, content: Iterable[Content]) -> Element:
    """The parent, with elements and text put at its end in this order."""
    for piece in content:
        if piece is None:
            continue
        if isinstance(piece, Element):
            parent.append(piece)
        elif len(parent):
            parent[-1].tail = (parent[-1].tail or "") + clean(str(piece))
        else:
            parent.text = (parent.text or "") + clean(str(piece))
    return parent


# What may not stand in an address as it is; everything else, Chinese too, a browser takes.
UNSAFE = str.maketrans({letter: f"%{ord(letter):02X}" for letter in '%#<>"\n\r\t \x00'})


def data_url(kind: str, text: str) -> str:
    """A file inside of an address, so that it can be saved without anything being loaded."""
    return f"data:{kind};charset=utf-8,{clean(text).translate(UNSAFE)}"


def download(text: str, name: str, address: str) -> Element:
    """A link that saves a file."""
    return tag("a", text, download=name, href=address)


def document(root: Element) -> str:
    """A whole HTML page."""
    return "<!DOCTYPE html>\n" + tostring(root, encoding="unicode", method="html") + "\n"
