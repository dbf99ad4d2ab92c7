"""Settings of the running kernel: a step for the value now, and a line in a file for the next boot.

A line that an applied tuning wrote stays in the file although the value is as wanted: that is the line's effect.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dl3.host.cores import listed
from dl3.host.cpulist import mask_of
from dl3.host.facts.cpus import CPUS
from dl3.host.facts.memory import number_file
from dl3.host.facts.read import Facts
from dl3.host.facts.system import KSM
from dl3.host.tuning.cores import housekeeping
from dl3.host.tuning.names import SYSCTL, TMPFILES
from dl3.host.tuning.step import HEAD, SYSCTLS, FileStep, LiveStep

RING_US = 137  # 2,048 descriptors at 14.88 Mpps
LIVE_AND_FILE = "Linux, admin-guide/sysctl; systemd-tmpfiles(8)"
PAGE_KIB = 2048


@dataclass(frozen=True)
class Setting:
    """A wanted value. `line`: how a file of dl3 repeats it after a boot; empty if nothing needs to."""

    path: str
    now: str
    wanted: str
    why: str
    source: str
    line: str = ""
    is_least: bool = False  # a higher number is as good
    is_optional: bool = False

    @property
    def is_met(self) -> bool:
        """Whether nothing has to be written now."""
        return int(self.now) >= int(self.wanted) if self.is_least else self.now == self.wanted

    def step(self) -> LiveStep:
        """The step that writes it."""
        return LiveStep(
            path=self.path,
            before=self.now,
            after=self.wanted,
            why=self.why,
            source=self.source,
            is_optional=self.is_optional,
        )


def tmpfile(path: str, value: str) -> str:
    """A line for systemd-tmpfiles."""
    return f"w {path} - - - - {value}"


def sysctls(facts: Facts) -> Iterator[Setting]:
    """Watchdogs and NUMA balancing."""
    for name, path in SYSCTLS.items():
        now = facts.system.setting(path)
        if now is not None:
            yield Setting(path, now, "0", "interrupts workers", LIVE_AND_FILE, f"{name} = 0")


def merging(facts: Facts) -> Iterator[Setting]:
    """KSM. What it has merged stays so."""
    now = facts.system.setting(KSM)
    if now is not None and now != "2":
        yield Setting(KSM, now, "0", "scans and remaps memory", "white paper table 6-3", tmpfile(KSM, "0"))


def frequency(facts: Facts, no_turbo: bool) -> Iterator[Setting]:
    """Governors, and turbo on request."""
    why = "the frequency follows the load too late"
    for cpu in facts.cpus.online:
        if cpu.governor:
            path = f"{CPUS}/cpu{cpu.number}/cpufreq/scaling_governor"
            line = tmpfile(f"{CPUS}/cpu*/cpufreq/scaling_governor", "performance")
            yield Setting(path, cpu.governor, "performance", why, "white paper, BIOS tables (P-states)", line)
    for path, off in ((f"{CPUS}/intel_pstate/no_turbo", "1"), (f"{CPUS}/cpufreq/boost", "0")):
        now = facts.system.setting(path)
        if no_turbo and now is not None:
            yield Setting(path, now, off, "measurements vary with it", "white paper, BIOS tables", tmpfile(path, off))


def idle_states(facts: Facts, isolated: frozenset[int]) -> Iterator[Setting]:
    """Deep states of the cores of workers."""
    slow = [n for n, state in enumerate(facts.cpus.idle_states) if state.latency_us > RING_US]
    for cpu in facts.cpus.online:
        for n in slow if cpu.number in isolated else ():
            path = f"{CPUS}/cpu{cpu.number}/cpuidle/state{n}/disable"
            now = "1" if n in cpu.disabled_states else "0"
            why = f"waking up takes {facts.cpus.idle_states[n].latency_us} us, longer than a ring lasts"
            yield Setting(path, now, "1", why, "white paper, BIOS tables (C-states)", tmpfile(path, "1"))


def huge_pages(facts: Facts, mib: dict[int, int]) -> Iterator[Setting]:
    """Pages of 2 MiB on each node, if there are too few."""
    for node in facts.nodes:
        has = node.pages_of(PAGE_KIB)
        n = -(-mib.get(node.number, 0) * 1024 // PAGE_KIB)
        if has and n:
            path = number_file(node.folder, PAGE_KIB)
            why = f"dl3d needs {mib[node.number]:,} MiB on node {node.number}"
            yield Setting(path, str(has.total), str(n), why, "src/port/pools.c", tmpfile(path, str(n)), is_least=True)


def interrupts(facts: Facts, isolated: frozenset[int]) -> Iterator[Setting]:
    """Interrupts that are handled on cores of workers. After a boot, irqaffinity= does this."""
    rest = housekeeping(facts, isolated)
    for irq in facts.irqs:
        if irq.disturbs(isolated) and irq.affinity & isolated:
            wanted = listed((irq.affinity - isolated) & rest or rest)
            why = f"{irq.actions} interrupts a worker"
            path = f"/proc/irq/{irq.number}/smp_affinity_list"
            yield Setting(path, listed(irq.affinity), wanted, why, "white paper appendices 6 and 9", is_optional=True)


def steering(facts: Facts, isolated: frozenset[int]) -> Iterator[Setting]:
    """Receive packet steering to cores of workers."""
    for one in facts.interfaces:
        for queue in one.queues:
            if queue.rps & isolated:
                path = f"/sys/class/net/{one.name}/queues/{queue.name}/rps_cpus"
                wanted = mask_of(queue.rps - isolated)
                yield Setting(
                    path, queue.mask, wanted, "softirqs of Linux interrupt a worker", "Linux, networking/scaling"
                )


def live_steps(settings: list[Setting]) -> list[LiveStep]:
    """Steps for what is not as wanted."""
    return [one.step() for one in settings if not one.is_met]


def file_step(facts: Facts, path: str, settings: list[Setting], why: str) -> list[FileStep]:
    """The file with the lines of all settings that are not as wanted, or only so because of the file."""
    before = facts.system.own_file(path)
    have = (before or "").splitlines()
    is_line: Callable[[Setting], bool] = (
        (lambda one: one.line.startswith("w ")) if path == TMPFILES else (lambda one: " = " in one.line)
    )
    lines = [one.line for one in settings if is_line(one) and (not one.is_met or one.line in have)]
    after = HEAD + "".join(f"{line}\n" for line in dict.fromkeys(lines))
    if not lines or after == before:
        return []
    return [FileStep(path=path, before=before, after=after, why=why, source=LIVE_AND_FILE)]


def setting_steps(facts: Facts, settings: list[Setting]) -> list[FileStep | LiveStep]:
    """Files first, then the values."""
    return [
        *file_step(facts, SYSCTL, settings, "sysctls after each boot"),
        *file_step(facts, TMPFILES, settings, "values in sysfs after each boot"),
        *live_steps(settings),
    ]
