"""A chart as a separate file: with legend and colours, without page-only features."""

from copy import deepcopy
from xml.etree.ElementTree import Element, tostring

from dl3.report.ink import file_style
from dl3.report.markup import tag

STYLE = file_style()


def strip(element: Element) -> None:
    """Remove tooltips, links and values for programs, recursively."""
    for child in list(element):
        if child.get("class") == "tip":
            element.remove(child)
            continue
        if child.tag == "a":
            child.tag = "g"
        for key in [key for key in child.attrib if key == "href" or key.startswith("data-")]:
            del child.attrib[key]
        strip(child)


def saved(picture: Element) -> str:
    """The file of a chart of the page."""
    copy = deepcopy(picture)
    strip(copy)
    full = copy.attrib.pop("data-full", copy.get("viewBox", ""))
    _, _, width, height = full.split()
    for key, value in (
        ("viewBox", full),
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("width", width),
        ("height", height),
    ):
        copy.set(key, value)
    copy.insert(0, tag("style", STYLE))
    return tostring(copy, encoding="unicode")
