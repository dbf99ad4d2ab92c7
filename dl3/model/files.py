"""Files that people name: read whole, bounded, and only text that can be printed again."""

import stat
from pathlib import Path

from dl3.model.fault import UsageFault


def read_bounded(path: Path, most_bytes: int, what: str) -> bytes:
    """The bytes of a regular file or a pipe; UsageFault where it is a device or has more than `most_bytes`. OSError as open(2)."""
    with path.open("rb") as file:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise UsageFault(f"{path} is a device, not {what}: name a regular file")
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise UsageFault(f"{path} has more than {most_bytes:,} bytes, the most of {what}: name another file")
    return content


def unprintable(text: str) -> str:
    """The first character that no text file can hold, in words, or '': NUL, or half of a surrogate pair."""
    for character in text:
        if character == "\0":
            return "the character NUL"
        if "\ud800" <= character <= "\udfff":
            return f"half of a surrogate pair, \\u{ord(character):04x}, which is not a character"
    return ""
