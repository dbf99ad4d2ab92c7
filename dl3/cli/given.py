"""Options that are judged as they are read, before anybody is sought and anything is started."""

from pathlib import Path

from dl3.model.campaign import MOST_FRAME_BYTES
from dl3.model.fault import UsageFault
from dl3.record.journal import is_record

LEAST_BYTES = 64  # of a frame, with FCS


def frames_of(text: str) -> tuple[str, ...]:
    """Sizes and mixes, each once; what a word that is no number means, dl3gen judges."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for word in words:
        is_number = word.isascii() and word.isdigit()
        if not (LEAST_BYTES <= int(word) <= MOST_FRAME_BYTES if is_number else word[0].isalpha()):
            raise UsageFault(
                f"--sizes {text}: frames of {LEAST_BYTES} to {MOST_FRAME_BYTES} bytes (with FCS) and mixes are wanted, "
                "with commas, like 64,1518,imix"
            )
    return words


def sizes(text: str) -> str:
    """--sizes as it was given, or a complaint."""
    frames_of(text)
    return text


def record(path: Path | None) -> Path | None:
    """--record as it was given: a file to begin, or a record; no line is added to a file of anything else."""
    try:
        if path is None or not path.exists() or is_record(path):
            return path
    except OSError as error:
        raise UsageFault(f"--record {path} cannot be read: {error.strerror}; name another file") from error
    raise UsageFault(f"--record {path} is no record: name another file, or none for a new one")


def source(path: Path | None) -> Path | None:
    """--from as it was given: a file that is there; what is in it, its reader says."""
    if path is not None and not path.exists():
        raise UsageFault(f"there is no record {path}: name a file that 'dl3 bench' wrote")
    return path
