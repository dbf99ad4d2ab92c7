"""What 'dl3 show labels' prints."""

import pytest

from dl3.cli.labels import draw_labels, way
from dl3.cli.printing import out
from dl3.cli.pushed import pushed
from dl3.control.label_replies import Label, Labels

HOP = {"via": "10.0.0.1", "port": "p1", "interface": "p1"}


def _label(**keys: object) -> Label:
    return Label.model_validate(
        {"label": 100, "does": "forward", "ttl": "uniform", "vrf": None, "via": None, "port": None, **keys}
    )


@pytest.mark.parametrize(
    ("labels", "ttl", "text"), [((), None, None), ((), 9, None), ((100,), None, "100"), ((16, 0), 9, "16/0 ttl 9")]
)
def labels_are_written_as_in_a_route(labels: tuple[int, ...], ttl: int | None, text: str | None) -> None:
    assert pushed(labels, ttl) == text


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (_label(does="linux"), "left to Linux"),
        (_label(does="lookup", vrf="red"), "looked up in red"),
        (_label(**HOP), "via 10.0.0.1 dev p1"),
        (_label(port="p1", interface="p1"), "dev p1"),
        (
            _label(members=[{**HOP, "weight": 1, "labels": [7, 8]}, {**HOP, "via": "::1", "weight": 2}]),
            "via 10.0.0.1 dev p1 label 7/8, via ::1 dev p1",
        ),
    ],
)
def a_label_has_one_way(label: Label, text: str) -> None:
    assert way(label) == text


def a_page_says_how_to_get_the_next() -> None:
    with out.capture() as printed:
        out.print(draw_labels(Labels(n=2, labels=(_label(**HOP, labels=[200]),), next=100)))
        out.print(draw_labels(Labels(n=0, labels=(), next=None)))
    text = printed.get()
    assert "200" in text
    assert "uniform" in text
    assert "More: --after 100" in text
    assert "There are no MPLS labels." in text
