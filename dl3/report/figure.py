"""A chart on the page: caption, series that can be switched off, pictures, and links to save them."""

from xml.etree.ElementTree import Element

from dl3.report.chart import Drawing
from dl3.report.ink import N_KEYS
from dl3.report.markup import data_url, download, tag
from dl3.report.plot import Entry, swatch
from dl3.report.saved import saved
from dl3.report.words import Words

N_ON_A_PAGE = 6  # small charts that stay together when printed
WIDE = 600  # points: a picture at least this wide gets the full width of the page
SWATCHES = {"bar": "-1 -10 13 13", "hollow": "-1 -10 13 13"}


def key(n: int, entry: Entry, can_hide: bool) -> Element:
    """A series with its appearance; it is shown while ticked."""
    view = SWATCHES.get(entry.shape, "-9 -10 22 12")
    class_ = "swatch box" if entry.shape in SWATCHES else "swatch"
    sample = tag("svg", *swatch(entry, 0, 0), viewBox=view, class_=class_, aria_hidden="true")
    if not can_hide:
        return tag("span", sample, entry.name, class_="key")
    box = tag("input", type="checkbox", class_=f"k{n % N_KEYS}", checked="", autocomplete="off")
    return tag("label", box, sample, tag("span", entry.name, class_=f"e{n % N_KEYS}"), class_="key")


def keys(drawing: Drawing) -> Element | None:
    """The legend of a figure."""
    shown = [entry for entry in drawing.keys if entry.name]
    series = [entry for entry in shown if entry.shape != "limit"]
    made = [key(n, entry, entry.shape != "limit" and len(series) > 1) for n, entry in enumerate(shown)]
    return tag("div", *made, class_="keys") if made else None


def picture(shown: Element, name: str, caption: str | None, words: Words) -> Element:
    """One picture with the link that saves it."""
    link = download("SVG", f"{name}.svg", data_url("image/svg+xml", saved(shown)))
    link.set("class", "save")
    link.set("title", words("tool.svg"))
    return tag("div", tag("p", caption) if caption else None, link, shown, class_="picture")


def is_half(shown: Element) -> bool:
    """Whether two pictures fit side by side."""
    return float(shown.get("viewBox", "0 0 0 0").split()[2]) < WIDE


def figure(number: int | None, name: str, drawing: Drawing, words: Words) -> Element:
    """A chart with its caption, numbered if it has a picture; several small ones are set in two columns with names."""
    n = len(drawing.pictures)
    pictures = [
        picture(shown, f"{name}-{i}" if n > 1 else name, shown.get("aria-label") if n > 1 else None, words)
        for i, shown in enumerate(drawing.pictures, 1)
    ]
    text = words("figure", n=number, title=drawing.title) if number else drawing.title
    caption = tag("figcaption", text, tag("small", drawing.note) if drawing.note else None)
    is_small = bool(pictures) and all(is_half(shown) for shown in drawing.pictures)
    shown = tag("div", *pictures, class_="pictures many" if is_small else "pictures") if pictures else None
    legend = keys(drawing) if pictures else None
    missing = [tag("small", words("gap.head")), tag("ul", *(tag("li", one) for one in drawing.missing), class_="plain")]
    rest = missing if drawing.missing else []
    return tag("figure", caption, legend, shown, *rest, id=f"chart-{name}", class_="many" if n > N_ON_A_PAGE else None)
