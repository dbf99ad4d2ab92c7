"""Runs commands on hosts and routers, and returns their output."""

import contextlib
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dl3.lab.namespace import Namespace
from dl3.model.fault import Fault


def batch(namespace: Namespace, lines: Iterable[str], family: str = "", may_fail: bool = False) -> list[int]:
    """`ip -batch` with these lines in a single process; returns the indexes of those that failed."""
    text = "\n".join(lines) + "\n"
    words = ["ip", *filter(None, [family]), "-n", namespace.name, *(["-force"] if may_fail else []), "-batch", "-"]
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=60)
    if done.returncode != 0 and not may_fail:
        raise Fault(f"'{text.strip()}' failed: {done.stderr.strip()}")
    return [int(number) - 1 for number in re.findall(r"Command failed -:(\d+)", done.stderr)]


def ask(namespace: Namespace, *words: str, timeout_s: float = 120.0) -> str:
    """What a command prints on both outputs, whether or not it succeeds."""
    command = namespace.command(*words)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout_s)
    return done.stdout


@dataclass(frozen=True)
class Pings:
    """The output of ping."""

    sent: int
    received: int
    text: str


def ping(namespace: Namespace, address: str, *options: str, count: int = 2) -> Pings:
    """Echoes one by one, each by its own ping: a ping of several waits too briefly for the last reply."""
    texts = [ask(namespace, "ping", "-n", "-c", "1", "-W", "10", *options, address) for _ in range(count)]
    found = [re.search(r"(\d+) packets transmitted, (\d+) received", text) for text in texts]
    assert all(found), texts
    return Pings(count, sum(int(one[2]) for one in found if one), "".join(texts))


@contextlib.contextmanager
def running(namespace: Namespace, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs until the end of the block; its output can be read from its stdout."""
    process = subprocess.Popen(
        namespace.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)
        assert process.stdout
        process.stdout.close()
