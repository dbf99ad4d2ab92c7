"""The steps of a tuning: a closed set. What is not of it, for example in a plan that was edited, is not read."""

import re
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from dl3.host.facts.boot import KERNEL_FILE
from dl3.host.facts.devices import PCI_ADDRESS
from dl3.host.tuning.names import DRIVERS, GRUB, MODULES, PARAMETERS, SYSCTL, TMPFILES, UNMANAGED
from dl3.model.noun import Noun

VFIO = "vfio-pci"
Then = Literal["", "update-grub", "kernel-install", "nmcli-reload"]

CPU = r"/sys/devices/system/cpu"
SYSCTLS = {
    "kernel.watchdog": "/proc/sys/kernel/watchdog",
    "kernel.nmi_watchdog": "/proc/sys/kernel/nmi_watchdog",
    "kernel.numa_balancing": "/proc/sys/kernel/numa_balancing",
}
# Files of the kernel that a step may write, and what.
LIVE = (
    *((re.escape(path), r"\d+") for path in SYSCTLS.values()),
    (r"/sys/kernel/mm/ksm/run", r"[012]"),
    (rf"{CPU}/cpu(\d+|\*)/cpufreq/scaling_governor", r"[a-z]+"),
    (rf"{CPU}/cpu\d+/cpuidle/state\d/disable", r"[01]"),
    (rf"{CPU}/intel_pstate/no_turbo|{CPU}/cpufreq/boost", r"[01]"),
    (r"/sys/devices/system/node/node\d+/hugepages/hugepages-2048kB/nr_hugepages", r"\d+"),
    (r"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", r"\d+"),
    (r"/proc/irq/\d+/smp_affinity_list", r"[\d,-]+"),
    (r"/sys/class/net/[^/]+/queues/rx-\d+/rps_cpus", r"[0-9a-f,]+"),
)
WORD = rf"(?:{'|'.join(PARAMETERS)})=[\w,:-]+"
HEAD = "# Made by 'dl3 host apply'. 'dl3 host undo' removes it.\n"


def is_live(path: str, value: str) -> bool:
    """Whether a step may write this value to this file."""
    return any(re.fullmatch(one, path) and re.fullmatch(allowed, value) for one, allowed in LIVE)


def is_tmpfile(line: str) -> bool:
    """Whether a line of the file for systemd-tmpfiles writes what a step may write."""
    match = re.fullmatch(r"w (\S+) - - - - (\S+)", line)
    return bool(match) and is_live(match[1], match[2]) if match else False


# Lines that each file may have after HEAD.
LINES = {
    GRUB: re.compile(rf'GRUB_CMDLINE_LINUX="\$GRUB_CMDLINE_LINUX(?: {WORD})+"'),
    SYSCTL: re.compile(rf"(?:{'|'.join(map(re.escape, SYSCTLS))}) = [01]"),
    MODULES: re.compile(VFIO),
    UNMANAGED: re.compile(r"\[keyfile\]|unmanaged-devices\+=(?:interface-name:[^\s;/]+;?)+"),
}


class StepBase(Noun):
    """What all steps have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    why: str
    source: str
    needs_reboot: bool = False


class FileStep(StepBase):
    """Write a file that belongs to dl3. `before`: its contents, None if there is none."""

    kind: Literal["file"] = "file"
    path: str
    before: str | None
    after: str
    then: Then = ""

    @model_validator(mode="after")
    def is_of_the_set(self) -> "FileStep":
        """The path, and each line."""
        if self.path == KERNEL_FILE:
            had = (self.before or "").split()
            added = [word for word in self.after.split() if word not in had]
            if self.before is None or all(re.fullmatch(WORD, word) for word in added):
                return self
            raise ValueError(f"{self.path} may only get parameters of dl3")
        if self.path.startswith(DRIVERS) and PCI_ADDRESS.fullmatch(self.path.removeprefix(DRIVERS)):
            if self.after == f"{VFIO}\n":
                return self
            raise ValueError(f"{self.path} may only contain {VFIO}")
        if self.path != TMPFILES and self.path not in LINES:
            raise ValueError(f"{self.path} is no file of dl3")
        for line in self.after.removeprefix(HEAD).splitlines():
            is_known = is_tmpfile(line) if self.path == TMPFILES else LINES[self.path].fullmatch(line)
            if not is_known:
                raise ValueError(f"'{line}' is no line that dl3 writes to {self.path}")
        return self


class LiveStep(StepBase):
    """Write a value to a file of the kernel. `is_optional`: the kernel may refuse it, as with managed interrupts."""

    kind: Literal["live"] = "live"
    path: str
    before: str
    after: str
    is_optional: bool = False

    @model_validator(mode="after")
    def is_of_the_set(self) -> "LiveStep":
        """The path and both values."""
        if not is_live(self.path, self.after) or not is_live(self.path, self.before) or "*" in self.path:
            raise ValueError(f"'{self.after}' to {self.path} is nothing that dl3 writes")
        return self


class DriverStep(StepBase):
    """Bind a network card to vfio-pci by driver_override. Undone by itself unless it is confirmed."""

    kind: Literal["driver"] = "driver"
    address: str
    before: str | None
    after: Literal["vfio-pci"] = "vfio-pci"

    @field_validator("address")
    @classmethod
    def is_pci(cls, value: str) -> str:
        """A PCI address."""
        if not PCI_ADDRESS.fullmatch(value):
            raise ValueError(f"'{value}' is no PCI address")
        return value


class VfSettings(Noun):
    """Settings of a VF; None: as the driver has them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mac: str | None = Field(default=None, pattern=r"^[0-9a-f]([02468ace]:[0-9a-f]{2}(:[0-9a-f]{2}){4})$")
    vlan: int | None = Field(default=None, ge=0, le=4094)
    spoofchk: bool | None = None
    trust: bool | None = None


class VfStep(StepBase):
    """Make VFs of a network card that has none. Undone by itself unless it is confirmed."""

    kind: Literal["vfs"] = "vfs"
    address: str
    before: Literal[0] = 0
    after: int = Field(ge=1, le=256)
    autoprobe: bool | None
    settings: tuple[VfSettings, ...]
    driver: Literal["", "vfio-pci"] = ""

    @model_validator(mode="after")
    def is_consistent(self) -> "VfStep":
        """The address, and settings for each VF."""
        if not PCI_ADDRESS.fullmatch(self.address):
            raise ValueError(f"'{self.address}' is no PCI address")
        if len(self.settings) != self.after:
            raise ValueError(f"{len(self.settings)} settings for {self.after} VFs")
        return self


AnyStep = FileStep | LiveStep | DriverStep | VfStep
Step = Annotated[AnyStep, Field(discriminator="kind")]


def target(step: AnyStep) -> str:
    """What a step changes."""
    return step.address if isinstance(step, DriverStep | VfStep) else step.path
