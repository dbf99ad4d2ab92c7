"""A campaign's file, read with all that this program knows: its kinds of devices and the published cases."""

from dl3.campaign.reader import Campaign
from dl3.campaign.shipped import read_named
from dl3.campaign.vocabulary import Vocabulary
from dl3.dut.beds import abilities
from dl3.dut.external import wrong
from dl3.report.published import SOURCES, published_for, table


def published() -> frozenset[str]:
    """What a report can draw beside a case: 'white-paper' for all of it, 'white-paper 1.1' for one case."""
    cases = {row.case for row in table()}
    names = [f"{source} {case}".strip() for source in SOURCES for case in ("", *cases)]
    return frozenset(name for name in names if published_for([name]))


def vocabulary() -> Vocabulary:
    """Of this program."""
    return Vocabulary(kinds=abilities(), published=published(), wrong=wrong)


def read_campaign(word: str) -> Campaign:
    """The campaign that a person means by a file or a name."""
    return read_named(word, vocabulary())
