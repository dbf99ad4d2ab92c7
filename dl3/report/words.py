"""The texts of a report in one language."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Language(StrEnum):
    """A report's language."""

    EN = "en"
    ZH = "zh"


@dataclass(frozen=True)
class Words:
    """All texts of one language by key; {placeholders} in them are filled in."""

    language: Language
    table: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """The text of a key."""
        return self.table[key].format(**values)

    def name(self, group: str, name: str) -> str:
        """The display name of a name in a record; the name itself if the table has none."""
        return self.table.get(f"{group}.{name}", name)

    def quoted(self, text: str) -> str:
        """A value of a campaign or of a published table, translated if known."""
        return self.name("quoted", text)

    def place(self, place: str) -> str:
        """A location of loss; the name of a counter follows its meaning."""
        return self.name("place", self.name("means", place))

    def frame(self, frame: str) -> str:
        """A frame size or a mix: '64-byte', 'IMIX'."""
        return self("frame.size", size=frame) if is_size(frame) else self.name("frame", frame)

    def short_frame(self, frame: str) -> str:
        """The same for an axis or a cell."""
        return frame if is_size(frame) else self.name("frame", frame)


def is_size(frame: str) -> bool:
    """Whether all frames have one size."""
    return frame.isascii() and frame.isdigit()
