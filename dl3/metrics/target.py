"""A program whose metrics are read: all its methods within one time limit, or nothing of it."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from dl3.control.client import DL3D, DL3GEN, Client, Program
from dl3.control.replies import Reply
from dl3.metrics.families import Replies, families
from dl3.metrics.words import metrics
from dl3.model.fault import Fault

LOOKS = 5  # at the account, until nothing is in flight
BETWEEN_LOOKS_S = 0.005
GENERATOR_RESULTS: dict[str, object] = {"histograms": True}

Ask = Callable[..., dict[str, Any]]


def log(text: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"dl3 metrics: {text}\n")
    sys.stderr.flush()


def imbalance(ask: Ask, first: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest difference of the account of several looks: packets that are being processed are in some of them only."""
    looks = [first.get("in_flight")]
    while looks[-1] and len(looks) < LOOKS:
        time.sleep(BETWEEN_LOOKS_S)
        account = ask("status").get("account")
        looks.append(account.get("in_flight") if isinstance(account, Mapping) else None)
    if not all(isinstance(look, int) for look in looks):
        raise Fault("dl3d's reply to 'drops' has no packet accounting: use the same version of dl3")
    return {"packets": min((look for look in looks if look is not None), key=abs)}


def of_forwarder(ask: Ask) -> Replies:
    """The replies of dl3d. Linux and the flow table only if it has them."""
    replies = {"status": ask("status")}
    wanted = ["ports", "workers", "drops"]
    if replies["status"].get("control") == "linux":
        wanted.append("taps")
    table = replies["status"].get("table")
    if isinstance(table, Mapping) and "flow_bytes" in table:
        wanted.append("flows")
    replies |= {method: ask(method) for method in wanted}
    replies["imbalance"] = imbalance(ask, replies["drops"])
    return replies


def of_generator(ask: Ask) -> Replies:
    """The replies of dl3gen."""
    return {"status": ask("status"), "results": ask("results", **GENERATOR_RESULTS)}


READERS: Mapping[str, Callable[[Ask], Replies]] = {DL3D.name: of_forwarder, DL3GEN.name: of_generator}


@dataclass
class Target:
    """A socket. It says once when it is gone, and once when it is back."""

    program: Program
    path: Path
    timeout_s: float
    trouble: str = ""

    def replies(self) -> Replies:
        """All replies; Fault if not all came in time, or one is not as expected."""
        ends_s = time.monotonic() + self.timeout_s

        def ask(method: str, **params: object) -> dict[str, Any]:
            left_s = ends_s - time.monotonic()
            if left_s <= 0:
                raise Fault(f"{self.program.name} at {self.path} took more than {self.timeout_s:g} s to reply")
            return Client(self.path, left_s, self.program).ask(Reply, method, **params).model_dump()

        found = READERS[self.program.name](ask)
        # Whatever is not as expected shows here, not halfway through the answer to Prometheus.
        deque(families(metrics(), {str(self.path): (self.program.name, found)}), maxlen=0)
        return found

    def read(self) -> Replies | None:
        """The replies, or None; the log tells when that changes."""
        try:
            found, trouble = self.replies(), ""
        except Fault as fault:
            found, trouble = None, str(fault)
        except Exception as error:  # of this one only: the others are read nevertheless
            found, trouble = None, f"{self.program.name} at {self.path} sent what cannot be read ({error!r:.100})"
        if trouble and not self.trouble:
            log(f"{trouble}; {self.program.name}_up is 0 until it replies")
        if self.trouble and not trouble:
            log(f"{self.program.name} at {self.path} replies again")
        self.trouble = trouble
        return found


class Targets(Collector):
    """All programs, read at the same time when Prometheus asks."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self.targets = targets

    def collect(self) -> Iterator[Family]:
        """The metrics now."""
        with ThreadPoolExecutor(len(self.targets)) as threads:
            read = list(threads.map(Target.read, self.targets))
        pairs = zip(self.targets, read, strict=True)
        yield from families(metrics(), {str(one.path): (one.program.name, replies) for one, replies in pairs})

    def describe(self) -> Iterator[Family]:
        """Nothing: registering reads no socket."""
        return iter(())
