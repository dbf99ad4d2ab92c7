"""Parses a time budget from a file or the command line."""

import re

BUDGET_WANTED = "a time like '90s', '20m' or '1h30m'"
UNITS_S = (3600, 60, 1)


def seconds_of(text: str) -> float:
    """The budget in seconds; ValueError if it is invalid or zero."""
    found = re.fullmatch(r"(?:([0-9]{1,4})h)?(?:([0-9]{1,5})m(?:in)?)?(?:([0-9]{1,6})s)?", text.replace(" ", ""))
    parts = found.groups() if found else ()
    seconds = sum(int(part or 0) * unit for part, unit in zip(parts, UNITS_S, strict=False))
    if not seconds:
        raise ValueError(BUDGET_WANTED)
    return seconds
