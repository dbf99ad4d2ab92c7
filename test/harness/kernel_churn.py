"""A storm of changes in Linux around watched prefixes that never change, sent by one `ip -batch` at a given rate.

Watched, by 172.16.2.2 on right:  198.19.N.64/28 and 2001:2:0:2::1:NN00/120 for N below N_WATCHED.
Moving: MOVING, by a group on right whose members change. All else that changes leads to left.
"""

import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Self

from dl3.lab.links import NAMES
from dl3.lab.namespace import Namespace
from harness.taps import link_address

FAMILIES = (4, 6)
N_WATCHED = 16
MEMBERS = range(10, 14)
MOVING = {4: "198.19.200.0/24", 6: "2001:2:0:2::2:0/112"}
GROUPS_EACH = 16  # changes between two changes of a group's members
BATCH = 100
SUBSETS = ((0, 1, 2, 3), (0, 1), (1, 2, 3), (3,), (0, 2), (2, 1, 3))


def _object(family: int, link: int, member: int) -> int:
    """The ID of a next-hop object."""
    return 1000 * family + 100 * link + member


def _group(family: int, link: int, number: int) -> str:
    members = "/".join(str(_object(family, link, MEMBERS[i])) for i in SUBSETS[number % len(SUBSETS)])
    return f"nexthop replace id {family * 10 + link} group {members}"


def _watched(family: int, n: int) -> str:
    return f"198.19.{n}.64/28" if family == 4 else f"2001:2:0:2::1:{n:02x}00/120"


def _around(family: int, n: int) -> list[str]:
    """Prefixes that contain a watched one, and adjacent ones."""
    if family == 4:
        parts = ("0/24", "0/25", "0/26", "64/26", "64/27", "80/28", "128/25", "63/32", "80/32")
        return [f"198.19.{n}.{part}" for part in parts]
    beside = [f"2001:2:0:2::1:{n + 128:02x}{part}" for part in ("00/120", "40/122", "44/128", "45/128", "80/121")]
    return [*beside, f"2001:2:0:2::1:{n & ~1:02x}00/119", f"2001:2:0:2::1:{n & ~3:02x}00/118", "2001:2:0:2::1:0/116"]


def preparation() -> list[str]:
    """Neighbours, next-hop objects, groups, the watched prefixes."""
    lines = []
    for family in FAMILIES:
        for link, name in enumerate(NAMES):
            for n in MEMBERS:
                via = link_address(family, link, n)
                lines.append(f"neighbour replace {via} lladdr 02:00:00:00:0{link}:{n} dev {name}")
                lines.append(f"nexthop replace id {_object(family, link, n)} via {via} dev {name}")
                lines.append(f"route replace {_keeper(family, link, n)} via {via} dev {name}")
            lines.append(_group(family, link, 0))
        lines.append(f"route replace {MOVING[family]} nhid {family * 10 + 1}")
        lines += [f"route replace {_watched(family, n)} via {link_address(family, 1)}" for n in range(N_WATCHED)]
    return lines


def _keeper(family: int, link: int, n: int) -> str:
    """A route that keeps a next hop in use, and so its counter."""
    return f"203.0.113.{16 * link + n}/32" if family == 4 else f"2001:db8:cafe::{16 * link + n}/128"


def circle() -> list[str]:
    """Changes that restore the initial state, except for the members of groups."""
    lines: list[str] = []
    for family in FAMILIES:
        prefixes = sorted({prefix for n in range(N_WATCHED) for prefix in _around(family, n)})
        ways = [f"via {link_address(family, 0, n)} dev left" for n in MEMBERS] + [f"nhid {family * 10}"]
        for turn in range(3):
            lines += [f"route replace {prefix} {ways[(i + turn) % len(ways)]}" for i, prefix in enumerate(prefixes)]
        lines += [f"route delete {prefix}" for prefix in reversed(prefixes)]
    return _with_groups(lines)


def _with_groups(lines: Sequence[str]) -> list[str]:
    """Groups whose members change all the time."""
    mixed = []
    for i, line in enumerate(lines):
        mixed.append(line)
        if i % GROUPS_EACH == 0:
            number = i // GROUPS_EACH
            mixed.append(_group(FAMILIES[number % 2], number // 2 % 2, number // 4))
    return mixed


class KernelChurn:
    """Repeats the cycle in a with statement; it ends with a complete one."""

    def __init__(self, namespace: Namespace, per_second: float) -> None:
        self.n = 0
        self.seconds = 0.0
        self._interval_s = BATCH / per_second
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        words = ["ip", "-n", namespace.name, "-batch", "-"]
        self._ip = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @property
    def per_second(self) -> float:
        """The result of the cycles."""
        return self.n / self.seconds

    def _write(self) -> None:
        assert self._ip.stdin
        lines, begin = circle(), time.monotonic()
        while self.n % len(lines) or not self._stop.is_set():
            first = self.n % len(lines)
            some = lines[first : first + BATCH]
            self._ip.stdin.write("\n".join(some) + "\n")
            self._ip.stdin.flush()
            self.n += len(some)
            time.sleep(max(0.0, begin + self.n / BATCH * self._interval_s - time.monotonic()))
        self._ip.stdin.close()
        self._ip.wait()
        self.seconds = time.monotonic() - begin

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self._ip.stderr
        errors = self._ip.stderr.read()
        self._ip.stderr.close()
        assert not errors, f"Linux took each change: {errors[:300]}"
