"""Machines that tests make up: files as Linux shows them, from the facts of a topology. Not used by commands."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from pathlib import Path, PurePosixPath

from dl3.host.cores import listed
from dl3.host.facts.read import Facts, read
from dl3.host.finding import Finding
from dl3.host.sockets import hex_of
from dl3.host.tree import OUTPUTS, SESSIONS, StoredTree
from dl3.host.tuning.plan import Tuning
from dl3.host.tuning.step import DriverStep, LiveStep, VfStep

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
Where = tuple[int, int, int]  # node, package, core in its package
SOCKETS_HEAD = "  sl  local_address rem_address   st\n"
GRUB = 'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX=""\n'
CONFIG = "CONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\nCONFIG_CPU_ISOLATION=y\nCONFIG_VFIO_PCI=m\n"
RELEASE = "6.1.0-18-amd64"
TEXTS: Mapping[str, str] = {
    "/proc/sys/kernel/osrelease": f"{RELEASE}\n",
    "/proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro quiet\n",
    f"/boot/config-{RELEASE}": CONFIG,
    "/boot/grub/grub.cfg": "",
    "/usr/sbin/update-grub": "",
    "/usr/bin/systemd-run": "",
    "/run/systemd/system/boot.mount": "",
    "/usr/sbin/ip": "",
    "/usr/sbin/driverctl": "",
    "/etc/default/grub": GRUB,
    "/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "/sys/kernel/mm/ksm/run": "0\n",
    "/proc/sys/kernel/watchdog": "1\n",
    "/proc/sys/kernel/nmi_watchdog": "1\n",
    "/proc/sys/kernel/numa_balancing": "0\n",
    "/proc/sys/vm/stat_interval": "1\n",
    "/proc/sys/net/core/rps_sock_flow_entries": "0\n",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
}


@dataclass
class Machine:
    """A machine as Linux shows it. `interleaved`: the second threads of all cores come last, as on Intel servers."""

    n_nodes: int = 1
    n_cores: int = 4  # of each node
    n_threads: int = 1
    interleaved: bool = True
    where: Callable[[int], Where] | None = None  # instead of numbering node by node
    offline: tuple[int, ...] = ()
    no_nodes: tuple[int, ...] = ()  # nodes that are offline
    nics: tuple[str, ...] = ("0000:03:00.0",)  # on node 0 unless `nic_nodes` says otherwise
    nic_nodes: tuple[int, ...] = ()
    driver: str = "ixgbe"
    memory_mib: int = 65536  # of each node
    model: str = "Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz"
    governor: str | None = "performance"
    idle_states: tuple[tuple[str, int], ...] = ()  # (name, latency in us)
    has_1g: bool = True
    has_iommu: bool = True
    texts: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    routes: dict[int, list[dict[str, object]]] = field(default_factory=lambda: {4: [], 6: []})
    remote: list[dict[str, object]] = field(default_factory=list)
    sessions: dict[int, list[str]] = field(default_factory=lambda: {4: [], 6: []})

    def __post_init__(self) -> None:
        self.texts = {**TEXTS, **self.texts}
        self.cpu_files()
        self.node_files()
        for n, address in enumerate(self.nics):
            self.nic(address, self.nic_nodes[n] if self.nic_nodes else 0, f"eth{n}")

    @property
    def n_cpus(self) -> int:
        """All threads of all cores."""
        return self.n_nodes * self.n_cores * self.n_threads

    def place(self, cpu: int) -> Where:
        """Where a processor is."""
        if self.where:
            return self.where(cpu)
        core = cpu % (self.n_nodes * self.n_cores) if self.interleaved else cpu // self.n_threads
        return core // self.n_cores, core // self.n_cores, core % self.n_cores

    def cores(self) -> dict[tuple[int, int], list[int]]:
        """The threads of each core, by package and core."""
        found: dict[tuple[int, int], list[int]] = {}
        for cpu in range(self.n_cpus):
            if cpu not in self.offline:
                found.setdefault(self.place(cpu)[1:], []).append(cpu)
        return found

    def cpu_files(self) -> None:
        """Files of processors."""
        online = [cpu for cpu in range(self.n_cpus) if cpu not in self.offline]
        self.texts[f"{CPU}/present"] = f"0-{self.n_cpus - 1}\n"
        self.texts[f"{CPU}/online"] = f"{listed(online)}\n"
        self.texts[f"{CPU}/isolated"] = "\n"
        self.texts[f"{CPU}/nohz_full"] = "(null)\n"
        self.texts[f"{CPU}/smt/control"] = "on\n" if self.n_threads > 1 else "notsupported\n"
        flags = f"fpu {'pdpe1gb ' if self.has_1g else ''}constant_tsc nonstop_tsc"
        self.texts["/proc/cpuinfo"] = f"processor\t: 0\nmodel name\t: {self.model}\nflags\t\t: {flags}\n\n"
        cores = self.cores()
        for cpu in online:
            at, (_, package, core) = f"{CPU}/cpu{cpu}", self.place(cpu)
            self.texts[f"{at}/topology/thread_siblings_list"] = f"{listed(cores[package, core])}\n"
            self.texts[f"{at}/topology/core_id"] = f"{core}\n"
            self.texts[f"{at}/topology/physical_package_id"] = f"{package}\n"
            for n, (name, latency_us) in enumerate(self.idle_states):
                state = f"{at}/cpuidle/state{n}"
                self.texts |= {f"{state}/name": f"{name}\n", f"{state}/latency": f"{latency_us}\n"}
                self.texts[f"{state}/disable"] = "0\n"
            if self.governor:
                self.texts[f"{at}/cpufreq/scaling_governor"] = f"{self.governor}\n"
                self.texts[f"{at}/cpufreq/scaling_driver"] = "intel_pstate\n"

    def node_files(self) -> None:
        """Files of nodes and their memory."""
        nodes: dict[int, list[int]] = {}
        for cpu in range(self.n_cpus):
            nodes.setdefault(self.place(cpu)[0], []).extend([] if cpu in self.offline else [cpu])
        nodes = {node: cpus for node, cpus in nodes.items() if node not in self.no_nodes}
        self.texts[f"{NODE}/online"] = f"{listed(nodes)}\n"
        for node, cpus in nodes.items():
            at = f"{NODE}/node{node}"
            self.texts[f"{at}/cpulist"] = f"{listed(cpus)}\n"
            self.texts[f"{at}/meminfo"] = f"Node {node} MemTotal:       {self.memory_mib * 1024} kB\n"
            for kib in (2048, 1048576) if self.has_1g else (2048,):
                for name in ("nr_hugepages", "free_hugepages"):
                    self.texts[f"{at}/hugepages/hugepages-{kib}kB/{name}"] = "0\n"

    def nic(self, address: str, node: int, name: str, physfn: str | None = None) -> None:
        """A network card, with its interface."""
        at = f"/sys/bus/pci/devices/{address}"
        self.texts |= {
            f"{at}/class": "0x020000\n",
            f"{at}/vendor": "0x8086\n",
            f"{at}/device": "0x10fb\n",
            f"{at}/numa_node": f"{node}\n",
            f"{at}/sriov_totalvfs": "0\n" if physfn else "63\n",
            f"{at}/sriov_numvfs": "0\n",
            f"{at}/sriov_drivers_autoprobe": "1\n",
            f"{at}/driver_override": "(null)\n",
        }
        self.links[f"{at}/driver"] = f"../../../bus/pci/drivers/{self.driver}"
        if physfn:
            self.links[f"{at}/physfn"] = f"../{physfn}"
        if self.has_iommu:
            self.group(address, str(10 + len(self.links)))
        self.interface(name, address)

    def group(self, address: str, name: str) -> None:
        """Put a PCI function into an IOMMU group."""
        self.links[f"/sys/bus/pci/devices/{address}/iommu_group"] = f"../../../kernel/iommu_groups/{name}"
        self.texts[f"/sys/kernel/iommu_groups/{name}/devices/{address}"] = ""
        self.texts["/sys/class/iommu/dmar0"] = ""

    def interface(
        self, name: str, pci: str | None = None, kind: str | None = None, lower: tuple[str, ...] = (), master: str = ""
    ) -> None:
        """A network interface."""
        at = f"/sys/class/net/{name}"
        n_before = sum(path.endswith("/ifindex") for path in self.texts)
        self.texts |= {f"{at}/ifindex": f"{n_before + 2}\n", f"{at}/operstate": "up\n"}
        self.texts |= {f"{at}/uevent": f"DEVTYPE={kind}\n" if kind else "", f"{at}/queues/rx-0/rps_cpus": "0\n"}
        self.texts |= {f"{at}/lower_{one}": "" for one in lower}
        if pci:
            self.links[f"{at}/device"] = f"../../../{pci}"
        if master:
            self.links[f"{at}/master"] = f"../{master}"
        for one in lower:
            self.links[f"/sys/class/net/{one}/master"] = f"../{name}"

    def words(self, line: str) -> None:
        """Boot with these kernel parameters."""
        self.texts["/proc/cmdline"] = f"BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro quiet {line}\n"

    def isolate(self, cpus: str) -> None:
        """Boot with isolated CPUs."""
        self.words(f"isolcpus=managed_irq,domain,{cpus} nohz_full={cpus} rcu_nocbs={cpus}")
        self.texts[f"{CPU}/isolated"] = self.texts[f"{CPU}/nohz_full"] = f"{cpus}\n"

    def service(self, name: str) -> None:
        """Let a service run."""
        self.links[f"/run/systemd/units/invocation:{name}.service"] = "0123"

    def irq(self, number: int, actions: str, cpus: str) -> None:
        """An interrupt with a handler."""
        self.texts[f"/sys/kernel/irq/{number}/actions"] = f"{actions}\n"
        self.texts[f"/proc/irq/{number}/smp_affinity_list"] = f"0-{self.n_cpus - 1}\n"
        self.texts[f"/proc/irq/{number}/effective_affinity_list"] = f"{cpus}\n"

    def default_route(self, family: int, device: str, table: str = "main") -> None:
        """A default route."""
        self.route(family, "default", device, table)

    def route(self, family: int, destination: str, device: str, table: str = "main") -> None:
        """A route."""
        self.routes[family].append({"dst": destination, "dev": device, "table": table})

    def session(self, peer: str, local: str) -> None:
        """A session of sshd."""
        one = ip_address(peer)
        ends = [hex_of(ip_address(local)), hex_of(one)]
        family = 6 if isinstance(one, IPv6Address) else 4
        self.sessions[family].append(f"   0: {ends[0]}:0016 {ends[1]}:C350 01\n")

    def remote_session(self, peer: str, local: str, what: str = "ssh", is_here: bool = True) -> None:
        """A session that was found by its process."""
        self.remote.append({"what": what, "peer": peer, "local": local, "is_here": is_here})

    def everything(self) -> dict[str, str]:
        """All files with their contents."""
        outputs = {f"/{OUTPUTS}/ip{n}-routes": json.dumps(self.routes[n]) for n in (4, 6)}
        outputs[f"/{OUTPUTS}/{SESSIONS}"] = json.dumps(self.remote)
        tables = {"/proc/net/tcp": self.sessions[4], "/proc/net/tcp6": self.sessions[6]}
        return {**outputs, **{path: SOCKETS_HEAD + "".join(rows) for path, rows in tables.items()}, **self.texts}

    def tree(self) -> StoredTree:
        """As a tree in memory."""
        return StoredTree(self.everything(), dict(self.links))

    def write(self, root: Path) -> None:
        """As files below a folder."""
        for folder in ("var/lib", "run", "etc/sysctl.d", "etc/tmpfiles.d"):
            (root / folder).mkdir(parents=True)
        for path, text in self.everything().items():
            file = root / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for path, target in self.links.items():
            link = root / path.lstrip("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)


def found(check: Callable[[Facts], Iterator[Finding]], made: Machine) -> list[tuple[str, str]]:
    """(severity, what) of the findings of one check."""
    return [(str(one.severity), one.what) for one in check(read(made.tree()))]


def applied(tree: StoredTree, tuning: Tuning) -> StoredTree:
    """The same machine after the plan was applied and the machine was booted again: what the kernel would show."""
    texts, links = dict(tree.texts), dict(tree.links)
    for step in tuning.steps:
        if isinstance(step, DriverStep):
            links[f"/sys/bus/pci/devices/{step.address}/driver"] = f"../../../bus/pci/drivers/{step.after}"
            gone = [path for path, to in links.items() if path.endswith("/device") and to.endswith(step.address)]
            for one in gone:
                at = f"{PurePosixPath(one).parent}/"
                links = {path: to for path, to in links.items() if not path.startswith(at)}
                texts = {path: text for path, text in texts.items() if not path.startswith(at)}
        elif isinstance(step, VfStep):
            texts[f"/sys/bus/pci/devices/{step.address}/sriov_numvfs"] = f"{step.after}\n"
        elif isinstance(step, LiveStep):
            texts[step.path] = f"{step.after}\n"
        else:
            texts[step.path] = step.after
    texts["/proc/cmdline"] = f"{texts['/proc/cmdline'].strip()} {' '.join(tuning.parameters)}\n"
    for name in ("isolated", "nohz_full"):
        texts[f"{CPU}/{name}"] = f"{listed(tuning.isolated)}\n"
    return StoredTree(texts, links, tree.folders)
