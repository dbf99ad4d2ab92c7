"""The only function through which this module runs other programs; never through a shell."""

import subprocess
from collections.abc import Sequence

from dl3.model.fault import Fault

SECONDS = 120.0


def run(command: Sequence[str], seconds: float = SECONDS) -> str:
    """The output of a command; Fault with its last line if it failed."""
    name = " ".join(command)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, errors="replace")
    except OSError as error:
        raise Fault(f"cannot run '{name}': {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Fault(f"'{name}' took longer than {seconds:.0f} s") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise Fault(f"'{name}' failed with status {done.returncode}: {said}")
    return done.stdout


def output_of(command: Sequence[str]) -> str | None:
    """The output of a command, or None if it is missing or failed."""
    try:
        return run(command)
    except Fault:
        return None
