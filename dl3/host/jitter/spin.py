"""Spins on one core and records the gaps in which it did not run, as a worker would see them.

spin.py CORE SECONDS LEAST_US
    prints 'ready', waits for a line, spins, prints the gaps as one line of JSON, and waits for the end of its input

Uses only Python's standard library. Nothing is allocated while it spins.
"""

from __future__ import annotations

import array
import gc
import json
import os
import sys
import time

MOST = 100_000  # gaps that are kept one by one; more are only counted


def spin(seconds: float, least_ns: int) -> dict[str, object]:
    """Spin: start, end, number of gaps, and end and length of each, on CLOCK_MONOTONIC."""
    clock, ends, lengths, n = time.monotonic_ns, array.array("q", bytes(8 * MOST)), array.array("q", bytes(8 * MOST)), 0
    before = start = clock()
    end = start + int(seconds * 1e9)
    while before < end:
        now = clock()
        if now - before > least_ns:
            if n < MOST:
                ends[n], lengths[n] = now, now - before
            n += 1
        before = now
    kept = min(n, MOST)
    return {"start_ns": start, "end_ns": before, "n": n, "gaps": list(zip(ends[:kept], lengths[:kept]))}  # noqa: B905


def main() -> None:
    """Command line entry point."""
    core, seconds, least_us = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    os.sched_setaffinity(0, {core})
    gc.disable()
    spin(0.01, 0)  # touches all pages
    print("ready", flush=True)
    if sys.stdin.readline():
        print(json.dumps(spin(seconds, int(least_us * 1000))), flush=True)
        sys.stdin.read()  # so that its threads can still be looked at


if __name__ == "__main__":
    main()
