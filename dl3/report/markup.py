"""HTML and SVG as trees: text from a record is only ever text or an attribute value, never markup."""

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

Content = Element | str | int | None
Value = str | int | float | None

# Not allowed in an HTML page: control characters, surrogates, and Unicode noncharacters.
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def clean(text: str) -> str:
    """The text with a replacement for each character that is not allowed in a page."""
    return FORBIDDEN.sub("\ufffd", text)


def written(value: str | int | float) -> str:
    """An attribute's value; coordinates are rounded to a hundredth of a point."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else clean(str(value))


def tag(name: str, /, *content: Content, **attributes: Value) -> Element:
    """An element; `class_` means class, `text_anchor` means text-anchor, and attributes that are None are omitted."""
    made = Element(name)
    for key, value in attributes.items():
        if value is not None:
            made.set(key.rstrip("_").replace("_", "-"), written(value))
    return add(made, content)


def mark(element: Element, **values: str | float) -> Element:
    """The element with full-precision values for programs: data-NAME."""
    for key, value in values.items():
        element.set(f"data-{key}", clean(value) if isinstance(value, str) else repr(value))
    return element


def add(parent: Element, content: Iterable[Content]) -> Element:
    """The parent, with elements and text appended in this order."""
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


# Characters that must be escaped in a URL; browsers accept everything else, including Chinese.
UNSAFE = str.maketrans({letter: f"%{ord(letter):02X}" for letter in '%#<>"\n\r\t \x00'})


def data_url(kind: str, text: str) -> str:
    """A file as a data URL, so that it can be saved without loading anything."""
    return f"data:{kind};charset=utf-8,{clean(text).translate(UNSAFE)}"


def download(text: str, name: str, address: str) -> Element:
    """A link that saves a file."""
    return tag("a", text, download=name, href=address)


def document(root: Element) -> str:
    """A whole HTML page."""
    return "<!DOCTYPE html>\n" + tostring(root, encoding="unicode", method="html") + "\n"
