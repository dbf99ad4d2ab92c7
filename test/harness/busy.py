"""Takes a core away from whatever runs on it."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

LOOP = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint(flush=True)\nwhile True: pass"


@contextlib.contextmanager
def busy(core: int, loop: str = LOOP) -> Iterator[None]:
    """A thread that uses all of `core`, in its own session: two of them take it for twice as long."""
    with subprocess.Popen(
        [sys.executable, "-c", loop, str(core)], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()
