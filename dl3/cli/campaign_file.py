"""Reads a campaign file, checked against the kinds of devices and published cases of this program."""

from dl3.campaign.reader import Campaign
from dl3.campaign.shipped import read_named
from dl3.campaign.vocabulary import Vocabulary
from dl3.dut.beds import abilities
from dl3.dut.external import wrong
from dl3.report.published import SOURCES, published_for, table


def published() -> frozenset[str]:
    """What a report can draw next to a case: 'white-paper' for all of it, 'white-paper 1.1' for one case."""
    cases = {row.case or row.scenario for row in table()}
    names = [f"{source} {case}".strip() for source in SOURCES for case in ("", *cases)]
    return frozenset(name for name in names if published_for([name]))


def vocabulary() -> Vocabulary:
    """The names that this program supports."""
    return Vocabulary(kinds=abilities(), published=published(), wrong=wrong)


def read_campaign(word: str) -> Campaign:
    """The campaign given by a file or a name."""
    return read_named(word, vocabulary())
