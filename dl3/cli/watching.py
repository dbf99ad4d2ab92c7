"""--watch: repeats a command. In a terminal, the view is redrawn in place, and keys scroll it."""

import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment

from dl3.cli.printing import out

KEY = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)
LINE, PAGE, END = 1, 1 << 10, 1 << 20  # how far keys scroll: special units, see Window.move
MOVES = {
    **dict.fromkeys((b"\x1b[A", b"\x1bOA", b"k"), -LINE),
    **dict.fromkeys((b"\x1b[B", b"\x1bOB", b"j"), LINE),
    **dict.fromkeys((b"\x1b[5~", b"b"), -PAGE),
    **dict.fromkeys((b"\x1b[6~", b" "), PAGE),
    **dict.fromkeys((b"\x1b[H", b"\x1bOH", b"\x1b[1~", b"g"), -END),
    **dict.fromkeys((b"\x1b[F", b"\x1bOF", b"\x1b[4~", b"G"), END),
}


class Window:
    """As many lines of the output as the terminal has, with their position on the last line."""

    def __init__(self, drawn: RenderableType, has_keys: bool) -> None:
        self.drawn, self._has_keys = drawn, has_keys
        self._first, self._capacity = 0, 1

    def move(self, far: int) -> None:
        """Scroll by a key of MOVES; the limits are applied when drawing."""
        unit = {LINE: 1, PAGE: self._capacity, END: END}[abs(far)]
        self._first = max(0, self._first + (unit if far > 0 else -unit))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self.drawn, options.update(height=None), pad=False)
        height = console.size.height
        self._capacity = height if len(lines) <= height else max(1, height - 1)
        self._first = min(self._first, len(lines) - self._capacity) if len(lines) > self._capacity else 0
        shown = lines[self._first : self._first + self._capacity]
        for line in shown:
            yield from line
            yield Segment.line()
        if len(shown) < len(lines):
            how = "arrow and page keys scroll, Ctrl-C quits" if self._has_keys else "enlarge the terminal to see more"
            text = f"lines {self._first + 1} to {self._first + len(shown)} of {len(lines)}; {how}"
            yield Segment(text[: options.max_width])


@contextmanager
def keys() -> Iterator[int | None]:
    """The terminal's keys as they are pressed, from this descriptor; None if there is no keyboard."""
    try:
        there = sys.stdin.fileno()
        is_ours = os.isatty(there) and os.tcgetpgrp(there) == os.getpgrp()
    except (OSError, ValueError):
        is_ours = False
    if not is_ours:
        yield None
        return
    before = termios.tcgetattr(there)
    tty.setcbreak(there, termios.TCSANOW)
    try:
        yield there
    finally:
        termios.tcsetattr(there, termios.TCSANOW, before)


def wait(seconds: float, there: int | None, moved: Callable[[int], None]) -> None:
    """Wait this long; each scroll key is passed on at once."""
    until_s = time.monotonic() + seconds
    while there is not None and (left_s := until_s - time.monotonic()) > 0:
        if select.select([there], [], [], left_s)[0]:
            pressed = os.read(there, 64)
            if not pressed:
                break  # the terminal is gone
            for key in KEY.findall(pressed):
                if key in MOVES:
                    moved(MOVES[key])
    time.sleep(max(0.0, until_s - time.monotonic()))


def watch_terminal(draw: Callable[[], RenderableType], interval_s: float) -> None:
    """Redraw in place."""
    with keys() as there:
        window = Window(draw(), there is not None)
        with Live(window, console=out, auto_refresh=False) as live:

            def moved(far: int) -> None:
                window.move(far)
                live.refresh()

            while True:
                wait(interval_s, there, moved)
                window.drawn = draw()
                live.refresh()


def watch(draw: Callable[[], RenderableType], interval_s: float) -> None:
    """Until Ctrl-C; without a terminal, outputs follow one another, separated by an empty line."""
    if out.is_terminal and not out.is_dumb_terminal:
        watch_terminal(draw, interval_s)
    while True:
        out.print(draw())
        out.print()
        sys.stdout.flush()
        time.sleep(interval_s)
