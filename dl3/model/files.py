"""Reading of files named by the user: whole, with a size limit, and only text that can be printed."""

import stat
from pathlib import Path

from dl3.model.fault import UsageFault


def read_bounded(path: Path, most_bytes: int, what: str) -> bytes:
    """Read a regular file or a pipe. UsageFault if it is a device or has more than `most_bytes`; OSError as from
    open(2).
    """
    with path.open("rb") as file:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise UsageFault(f"{path} is a device, not {what}: choose a regular file")
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise UsageFault(f"{path} has more than {most_bytes:,} bytes, the maximum for {what}: choose another file")
    return content


def unprintable(text: str) -> str:
    """A description of the first character that is not valid in a text file (NUL or a lone surrogate), or ''."""
    for character in text:
        if character == "\0":
            return "the character NUL"
        if "\ud800" <= character <= "\udfff":
            return f"half of a surrogate pair, \\u{ord(character):04x}, which is not a character"
    return ""
