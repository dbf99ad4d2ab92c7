"""A page as rendered by Chromium: its elements and their sizes."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
VOID = {"meta", "br", "img", "input", "link", "hr"}
# Runs in a copy of the page whose policy permits it; records what only the browser can measure.
RULER = """<script>
const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
document.body.dataset.ruler = JSON.stringify({
  page: document.documentElement.scrollWidth, window: innerWidth,
  stuck_out: [...document.querySelectorAll('.tiles li')].filter(e => e.scrollWidth > e.clientWidth).map(
    e => e.textContent),
  figures: [...document.querySelectorAll('figure')].map(box),
  charts: [...document.querySelectorAll('.picture > svg')].map(
    s => ({box: box(s), texts: [...s.querySelectorAll('text')].filter(t => t.getClientRects().length).map(
      t => ({text: t.textContent, box: box(t)}))})),
  loaded: performance.getEntriesByType('resource').map(e => e.name)});
</script>"""


class Box(NamedTuple):
    """The position of an element, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box", slack: float) -> bool:
        """Whether the two overlap by more than a margin."""
        return (
            self.left < other.right - slack
            and other.left < self.right - slack
            and self.top < other.bottom - slack
            and other.top < self.bottom - slack
        )

    def is_inside(self, other: "Box", slack: float) -> bool:
        """Whether this one is completely inside the other."""
        return (
            other.left - slack <= self.left
            and other.top - slack <= self.top
            and self.right <= other.right + slack
            and self.bottom <= other.bottom + slack
        )


class Text(BaseModel):
    """A word in a chart."""

    text: str
    box: Box


class Chart(BaseModel):
    """A chart and the words in it."""

    box: Box
    texts: tuple[Text, ...]


class Ruled(BaseModel):
    """The measurements of the ruler."""

    page: float  # width of the whole content
    window: float
    stuck_out: tuple[str, ...]  # figures at the top that are wider than their tiles
    figures: tuple[Box, ...]
    charts: tuple[Chart, ...]
    loaded: tuple[str, ...]


@dataclass
class Node:
    """An element as rendered by the browser."""

    tag: str
    attributes: dict[str, str]
    parts: list["Node | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    def all(self, tag: str, **attributes: str) -> Iterator["Node"]:
        """Elements below with this tag and these attributes ('class_' is class, '_' stands for '-')."""
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        for part in self.parts:
            if isinstance(part, Node):
                if part.tag == tag and wanted.items() <= part.attributes.items():
                    yield part
                yield from part.all(tag, **attributes)


class Tree(HTMLParser):
    """The document printed by a browser."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = Node("", {})
        self.open = [self.root]
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """An element begins."""
        made = Node(tag, {key: value or "" for key, value in attrs})
        self.open[-1].parts.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_endtag(self, tag: str) -> None:
        """The innermost element ends."""
        if tag not in VOID:
            assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        """Text between elements."""
        self.open[-1].parts.append(data)


def chromium(page: Path, *options: str) -> str:
    """Open a page and return Chromium's output."""
    program = shutil.which("chromium")
    assert program, "there is no chromium: run tools/install-deps test"
    profile = f"--user-data-dir={page.parent / 'profile'}"
    command = [program, *FLAGS, profile, *options, page.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def shown(page: Path) -> Node:
    """The document as rendered by the browser."""
    return Tree(chromium(page, "--dump-dom")).root


def ruled(page: Path, width: int, as_printed: bool = False) -> Ruled:
    """The ruler's measurements in a copy of the page, in a window or on paper of this width."""
    copy = page.with_suffix(".ruler.html")
    text = page.read_text(encoding="utf-8").replace("'none';", "'none'; script-src 'unsafe-inline';", 1)
    if as_printed:
        text = text.replace("@media print", "@media all").replace("@media screen", "@media not all")
    copy.write_text(text.replace("</body>", f"{RULER}</body>"), encoding="utf-8")
    body = next(Tree(chromium(copy, f"--window-size={width},1600", "--dump-dom")).root.all("body"))
    return Ruled.model_validate_json(body.attributes["data-ruler"])
