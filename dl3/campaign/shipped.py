"""The campaigns that come with the program: files beside this one."""

from collections.abc import Sequence
from pathlib import Path

from dl3.campaign.reader import Campaign, read
from dl3.campaign.vocabulary import Vocabulary
from dl3.model.fault import UsageFault

FOLDER = Path(__file__).parent / "shipped"


def shipped() -> Sequence[Path]:
    """All, by name."""
    return sorted(FOLDER.glob("*.yaml"))


def path_of(word: str) -> Path:
    """The file that a person means: a file of theirs, or one of ours by name."""
    path = Path(word)
    if path.is_file():
        return path
    ours = FOLDER / f"{word}.yaml"
    if "/" not in word and ours.is_file():
        return ours
    names = ", ".join(each.stem for each in shipped())
    wrong = f"{word} is a directory" if path.is_dir() else f"there is no campaign {word}"
    raise UsageFault(f"{wrong}: name a YAML file, or one of ours: {names}")


def read_named(word: str, vocabulary: Vocabulary) -> Campaign:
    """The campaign that a person means."""
    return read(path_of(word), vocabulary)
