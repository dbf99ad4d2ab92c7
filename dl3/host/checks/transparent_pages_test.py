"""Transparent huge pages."""

from dl3.host.checks.transparent_pages import ENABLED, check
from dl3.host.fixture import Machine, found


def is_a_note() -> None:
    made = Machine()
    made.texts[ENABLED] = "always [madvise] never\n"
    assert found(check, made) == []
    made.texts[ENABLED] = "[always] madvise never\n"
    assert found(check, made) == [("note", "transparent huge pages are used for all programs")]
