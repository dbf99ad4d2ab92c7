"""Processors: topology, isolation, frequency and idle states."""

from dl3.host.cores import read_list
from dl3.host.cpulist import CpuSet
from dl3.host.tree import Tree, last_part, number, word
from dl3.model.noun import Noun

CPUS = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"
IDLE_STATES = 10  # at most
FLAGS = frozenset({"pdpe1gb", "constant_tsc", "nonstop_tsc", "hypervisor"})


class Cpu(Noun):
    """One processor of Linux, that is one thread of a core. Nothing is known of the place of one that is offline."""

    number: int
    is_online: bool
    node: int = 0
    package: int = 0
    core: int = 0
    siblings: tuple[int, ...] = ()  # threads of the same core, with this one
    governor: str | None = None
    disabled_states: tuple[int, ...] = ()  # numbers of idle states


class IdleState(Noun):
    """A C-state, as CPU 0 has it."""

    name: str
    latency_us: int
    is_disabled: bool


class Cpus(Noun):
    """All processors."""

    model: str = "unknown"
    is_virtual: bool = False
    flags: tuple[str, ...] = ()
    cpus: tuple[Cpu, ...]
    isolated: CpuSet = frozenset()
    nohz_full: CpuSet | None = None  # None: the kernel does not say, as it is built without
    smt: str | None = None  # on, off, forceoff, notsupported
    frequency_driver: str | None = None
    turbo: bool | None = None
    idle_states: tuple[IdleState, ...] = ()
    clocksource: str | None = None

    @property
    def online(self) -> tuple[Cpu, ...]:
        """Those that are online."""
        return tuple(cpu for cpu in self.cpus if cpu.is_online)

    @property
    def last(self) -> int:
        """The highest number."""
        return max(cpu.number for cpu in self.cpus)

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes with a processor that is online."""
        return tuple(sorted({cpu.node for cpu in self.online}))

    def siblings_of(self, numbers: frozenset[int]) -> frozenset[int]:
        """These, and all threads of their cores."""
        return numbers | {one for cpu in self.online if cpu.number in numbers for one in cpu.siblings}

    def cores_of(self, node: int) -> tuple[tuple[int, ...], ...]:
        """The cores of a node, each with all its threads that are online, by their lowest number."""
        return tuple(sorted({cpu.siblings for cpu in self.online if cpu.node == node}))


def list_in(tree: Tree, path: str) -> frozenset[int]:
    """A CPU list of sysfs; '(null)' stands for none."""
    found = word(tree, path) or ""
    return frozenset(read_list(found)) if found[:1].isdigit() else frozenset()


def node_of_cpu(tree: Tree) -> dict[int, int]:
    """The node of each processor that is online; kernels without NUMA have none."""
    return {
        cpu: node for node in list_in(tree, f"{NODES}/online") for cpu in list_in(tree, f"{NODES}/node{node}/cpulist")
    }


def cpu_at(tree: Tree, cpu: int, online: frozenset[int], nodes: dict[int, int]) -> Cpu:
    """One processor."""
    if cpu not in online:
        return Cpu(number=cpu, is_online=False)
    at = f"{CPUS}/cpu{cpu}"
    threads = list_in(tree, f"{at}/topology/thread_siblings_list") or frozenset({cpu})
    return Cpu(
        number=cpu,
        is_online=True,
        node=nodes.get(cpu, 0),
        package=number(tree, f"{at}/topology/physical_package_id") or 0,
        core=number(tree, f"{at}/topology/core_id") or 0,
        siblings=tuple(sorted((threads & online) | {cpu})),
        governor=word(tree, f"{at}/cpufreq/scaling_governor"),
        disabled_states=tuple(n for n in range(IDLE_STATES) if number(tree, f"{at}/cpuidle/state{n}/disable") == 1),
    )


def turbo_of(tree: Tree) -> bool | None:
    """Whether turbo is on; None if Linux does not control it."""
    off, boost = number(tree, f"{CPUS}/intel_pstate/no_turbo"), number(tree, f"{CPUS}/cpufreq/boost")
    if off is not None:
        return off == 0
    return None if boost is None else boost == 1


def idle_states_of(tree: Tree, cpu: int) -> tuple[IdleState, ...]:
    """The C-states of a processor."""
    found = []
    for n in range(IDLE_STATES):
        at = f"{CPUS}/cpu{cpu}/cpuidle/state{n}"
        name = word(tree, f"{at}/name")
        if name is None:
            break
        latency_us, off = number(tree, f"{at}/latency"), number(tree, f"{at}/disable")
        found.append(IdleState(name=name, latency_us=latency_us or 0, is_disabled=bool(off)))
    return tuple(found)


def first_stanza(text: str) -> str:
    """What /proc/cpuinfo says of the first processor."""
    return text.split("\n\n")[0] + "\n"


def read_cpus(tree: Tree) -> Cpus:
    """All processors of the machine."""
    online = list_in(tree, f"{CPUS}/online") or frozenset({0})
    present = list_in(tree, f"{CPUS}/present") | online
    nodes, first = node_of_cpu(tree), min(online)
    pairs = (line.partition(":") for line in (tree.text("/proc/cpuinfo", first_stanza) or "").splitlines())
    info = {key.strip(): value.strip() for key, _, value in pairs}
    flags = frozenset(info.get("flags", "").split())
    has_nohz = tree.has(f"{CPUS}/nohz_full")
    return Cpus(
        model=info.get("model name", "unknown"),
        is_virtual="hypervisor" in flags,
        flags=tuple(sorted(flags & FLAGS)),
        cpus=tuple(cpu_at(tree, cpu, online, nodes) for cpu in sorted(present)),
        isolated=list_in(tree, f"{CPUS}/isolated"),
        nohz_full=list_in(tree, f"{CPUS}/nohz_full") if has_nohz else None,
        smt=word(tree, f"{CPUS}/smt/control"),
        frequency_driver=last_part(word(tree, f"{CPUS}/cpu{first}/cpufreq/scaling_driver")),
        turbo=turbo_of(tree),
        idle_states=idle_states_of(tree, first),
        clocksource=word(tree, "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    )
