"""The built-in campaigns of dl3, in a folder next to this file."""

from collections.abc import Sequence
from pathlib import Path

from dl3.campaign.reader import Campaign, read
from dl3.campaign.vocabulary import Vocabulary
from dl3.model.fault import UsageFault

FOLDER = Path(__file__).parent / "shipped"


def shipped() -> Sequence[Path]:
    """All built-in campaigns, by name."""
    return sorted(FOLDER.glob("*.yaml"))


def path_of(word: str) -> Path:
    """The path of a campaign given as a file or as the name of a built-in campaign."""
    path = Path(word)
    if path.is_file():
        return path
    ours = FOLDER / f"{word}.yaml"
    if "/" not in word and ours.is_file():
        return ours
    names = ", ".join(each.stem for each in shipped())
    wrong = f"{word} is a directory" if path.is_dir() else f"unknown campaign '{word}'"
    raise UsageFault(f"{wrong}: specify a YAML file or a built-in campaign: {names}")


def read_named(word: str, vocabulary: Vocabulary) -> Campaign:
    """Read a campaign given as a file or by name."""
    return read(path_of(word), vocabulary)
