"""Services, single settings of the kernel, and the files of dl3 that are in place."""

from dl3.host.facts.boot import program
from dl3.host.tree import Tree, last_part, word
from dl3.model.noun import Noun

UNITS = "/etc/systemd/system"
SYSTEMD = "/run/systemd/system"  # see sd_booted(3)
ACTIVE = "/run/systemd/units"
SERVICES = ("tuned", "NetworkManager", "irqbalance", "ksm", "ksmtuned", "firewalld", "auditd", "cpupower", "thermald")
WANTED_BY = ("multi-user.target", "sysinit.target", "basic.target", "graphical.target")

KSM = "/sys/kernel/mm/ksm/run"
SETTINGS = (
    *(KSM, "/sys/kernel/mm/transparent_hugepage/enabled"),
    *("/proc/sys/kernel/watchdog", "/proc/sys/kernel/nmi_watchdog", "/proc/sys/kernel/soft_watchdog"),
    *("/proc/sys/kernel/numa_balancing", "/proc/sys/kernel/timer_migration", "/proc/sys/kernel/sched_rt_runtime_us"),
    *("/proc/sys/vm/stat_interval", "/proc/sys/net/core/rps_sock_flow_entries"),
    *("/sys/devices/virtual/workqueue/cpumask", "/sys/bus/workqueue/devices/writeback/cpumask"),
    "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
    *("/sys/devices/system/cpu/intel_pstate/no_turbo", "/sys/devices/system/cpu/cpufreq/boost"),
)
# Files that dl3 may write. No package owns one of them.
OWN_FILES = (
    "/etc/default/grub.d/90-dl3.cfg",
    "/etc/sysctl.d/90-dl3.conf",
    "/etc/tmpfiles.d/90-dl3.conf",
    "/etc/modules-load.d/90-dl3.conf",
    "/etc/NetworkManager/conf.d/90-dl3.conf",
)
DRIVERS = "/etc/driverctl.d"  # a file per PCI device
PROGRAMS = ("driverctl", "update-grub", "grubby", "kernel-install", "systemd-run", "ip")


class Service(Noun):
    """A unit of systemd."""

    name: str
    is_enabled: bool
    is_active: bool


class File(Noun):
    """A file and its contents."""

    path: str
    text: str


class Setting(Noun):
    """A value of the kernel that a file shows."""

    path: str
    value: str


class System(Noun):
    """What else runs and is set."""

    services: tuple[Service, ...] = ()
    settings: tuple[Setting, ...] = ()
    own_files: tuple[File, ...] = ()
    programs: tuple[str, ...] = ()
    tuned_profile: str | None = None
    irqbalance_options: str = ""
    distribution: str | None = None
    has_iommu: bool = False  # that Linux uses
    runs_systemd: bool = False  # as the first process
    product: str | None = None
    bios: str | None = None

    def setting(self, path: str) -> str | None:
        """The value of a setting, None if this kernel has no such file."""
        return next((one.value for one in self.settings if one.path == path), None)

    def own_file(self, path: str) -> str | None:
        """The contents of a file of dl3."""
        return next((one.text for one in self.own_files if one.path == path), None)

    def runs(self, name: str) -> bool:
        """Whether a service is active, or will be after the next boot."""
        return any(one.name == name and (one.is_active or one.is_enabled) for one in self.services)


def service(tree: Tree, name: str) -> Service:
    """One unit. One that is masked is a link to /dev/null, and not enabled."""
    unit = f"{name}.service"
    is_enabled = any(tree.has(f"{UNITS}/{target}.wants/{unit}") for target in WANTED_BY)
    is_masked = last_part(tree.link(f"{UNITS}/{unit}")) == "null"
    return Service(
        name=name, is_enabled=is_enabled and not is_masked, is_active=tree.has(f"{ACTIVE}/invocation:{unit}")
    )


def only_banned(text: str) -> str:
    """The lines of irqbalance's options that are not comments."""
    return "".join(f"{line}\n" for line in text.splitlines() if line.startswith("IRQBALANCE_"))


def only_name(text: str) -> str:
    """The line with the distribution's name."""
    return "".join(f"{line}\n" for line in text.splitlines() if line.startswith("PRETTY_NAME="))


def joined(tree: Tree, *paths: str) -> str | None:
    """Several small files as one phrase."""
    found = [one for one in (word(tree, path) for path in paths) if one]
    return " ".join(found) or None


def read_system(tree: Tree) -> System:
    """What else runs and is set."""
    drivers = [f"{DRIVERS}/{name}" for name in tree.names(DRIVERS)]
    texts = [(path, tree.text(path)) for path in (*OWN_FILES, *drivers)]
    values = [(path, word(tree, path)) for path in SETTINGS]
    name = (tree.text("/etc/os-release", only_name) or "").strip().removeprefix("PRETTY_NAME=").strip('"')
    dmi = "/sys/class/dmi/id"
    return System(
        services=tuple(service(tree, name) for name in SERVICES),
        settings=tuple(Setting(path=path, value=value) for path, value in values if value is not None),
        own_files=tuple(File(path=path, text=text) for path, text in texts if text is not None),
        programs=tuple(name for name in PROGRAMS if program(tree, name)),
        tuned_profile=word(tree, "/etc/tuned/active_profile"),
        irqbalance_options=(tree.text("/etc/default/irqbalance", only_banned) or "").strip(),
        distribution=name or None,
        runs_systemd=tree.has(SYSTEMD),
        has_iommu=bool(tree.names("/sys/class/iommu")),
        product=joined(tree, f"{dmi}/sys_vendor", f"{dmi}/product_name"),
        bios=joined(tree, f"{dmi}/bios_vendor", f"{dmi}/bios_version", f"{dmi}/bios_date"),
    )
