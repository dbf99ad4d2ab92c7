"""isolcpus=, nohz_full= and rcu_nocbs= name the same CPUs."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.isolation import KEYS, asked


def check(facts: Facts) -> Iterator[Finding]:
    """The sets on the command line. rcu_nocbs= without a list follows nohz_full=."""
    given = {key: facts.kernel.value(key) for key in KEYS}
    sets = {key: asked(facts, key) for key in KEYS}
    if not any(given.values()):
        return
    supported = [key for key in KEYS if not (key == "nohz_full" and facts.kernel.lacks("CONFIG_NO_HZ_FULL"))]
    if not given["rcu_nocbs"] and sets["nohz_full"]:
        supported.remove("rcu_nocbs")  # the kernel offloads callbacks of nohz_full CPUs by itself
    if len({sets[key] for key in supported}) > 1:
        said = ", ".join(f"{key}={given[key]}" if given[key] else f"no {key}=" for key in KEYS)
        yield Finding(
            check="unequal_sets",
            severity=Severity.BLOCKER,
            what=f"the sets of isolated CPUs differ: {said}",
            why="a CPU in only some of the sets still runs other threads, timer ticks or RCU callbacks; the kernel even "
            "ignores nohz_full= where it contradicts isolcpus=",
            source="Linux, kernel/sched/isolation.c; white paper §3.2.2",
            remedy="use one list for all three; 'dl3 host plan' prints it",
        )
