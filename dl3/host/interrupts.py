"""Ctrl-C and SIGTERM end a command by KeyboardInterrupt, once: what clears up is not interrupted, and nothing is
interrupted between being made and being in the hands of what will remove it.
"""

import signal
from types import FrameType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_held = 0
_has_come = False


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """The handler of both signals: raise KeyboardInterrupt, at the end of `Held` if one is open. Main thread."""
    global _has_come
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if _held:
        _has_come = True
        return
    raise KeyboardInterrupt


def take() -> None:
    """From now on both signals end this program so."""
    for number in SIGNALS:
        signal.signal(number, interrupt)


class Held:
    """In a with statement: an interrupt waits until its end. For what is short: start a program and note it, make a
    folder and note it. Main thread.
    """

    def __enter__(self) -> Self:
        global _held
        _held += 1
        return self

    def __exit__(self, *_: object) -> None:
        global _held, _has_come
        _held -= 1
        if _has_come and not _held:
            _has_come = False
            raise KeyboardInterrupt
