"""A lab of two guests: brought up, measured, taken down."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dl3.host.cores import usable
from dl3.host.guest.qmp import ask as ask_qmp
from dl3.host.guest.qmp import monitor
from dl3.host.interrupts import Held
from dl3.host.root import need_root
from dl3.lab.guest import PACKAGES, boot, lab_command
from dl3.lab.guest_image import cache_folder, made, need_packages
from dl3.lab.guest_programs import binary_of, build_for
from dl3.lab.kept import Place, Started, start
from dl3.lab.kvm_report import PAGES, Settings, devices_of, ring_keys, start_options
from dl3.lab.pair import TOP
from dl3.lab.serial import ask
from dl3.lab.single import built
from dl3.lab.stations import Middle, Sender, SwitchCounts, hops, is_explained
from dl3.lab.switches import lay_linux, reader, start_dl3d
from dl3.model.fault import Fault, UsageFault
from dl3.model.lab import VM1, VM2, Hop, LabRun, Topology, Vm
from dl3.model.noun import Noun
from dl3.record.journal import now

Say = Callable[[str], None]
BOOT_S, ANSWER_S = 600.0, 600.0  # only end what hangs: an emulated guest beside a busy neighbour is slow
DRAIN_S = 300.0
LOOK_S = 0.2
SPARE_MIB = 512
SCRIPT = """cd "$top"
export PYTHONPATH="$top"
exec "$python" -m dl3.lab.agent
"""


class Up(Noun):
    """A lab that stays: written when it is ready."""

    topology: Topology
    settings: Settings


@dataclass(frozen=True)
class Counted:
    """All counters at one time."""

    sender: Sender
    switch: SwitchCounts
    middle: Middle
    is_done: bool
    late: int
    p50_ns: float

    def hops_since(self, before: "Counted") -> tuple[Hop, ...]:
        """The places since then; VM1 counts each run by itself."""
        return hops(self.sender, self.switch.since(before.switch), self.middle.since(before.middle))


def need_memory(topology: Topology) -> None:
    """UsageFault if the guests do not fit."""
    needed = sum(vm.memory_mib for vm in topology.vms) + SPARE_MIB
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    available = next(int(line.split()[1]) for line in text.splitlines() if line.startswith("MemAvailable:")) >> 10
    if available < needed:
        raise UsageFault(
            f"the guests need {needed:,} MiB of memory, and {available:,} MiB are available: end something"
        )


def commands(topology: Topology, place: Place, image: Path) -> dict[str, list[str]]:
    """QEMU's arguments for each guest."""
    words = {"python": sys.executable}
    booted = boot(image, TOP, image / "agent.sh", words)
    return {vm.name: lab_command(topology, vm, place.folder, booted) for vm in topology.vms}


@dataclass(frozen=True)
class Lab:
    """The lab at a place."""

    place: Place
    topology: Topology
    settings: Settings
    say: Say

    def serial(self, vm: str) -> Path:
        """The line to the agent of a guest."""
        return self.place.folder / f"{vm}.serial"

    def ask(self, vm: str, do: str, **keys: Any) -> dict[str, Any]:
        """Ask the agent of a guest."""
        try:
            return ask(self.serial(vm), do, ANSWER_S, **keys)
        except Fault as fault:
            raise Fault(f"{vm}: {fault}") from fault

    def up(self, stays: bool) -> None:
        """Start everything; guests boot at the same time."""
        need_root("the lab")
        image = cache_folder()
        if self.topology.has_guests:
            need_packages(PACKAGES)
            need_memory(self.topology)
            made(image, self.say)
        image.mkdir(parents=True, exist_ok=True)
        build = build_for(self.topology, self.say)
        binaries = {vm.name: self._binary(vm, image, build) for vm in self.topology.vms}
        with Held():
            self.place.folder.mkdir()
        self._start_switch(stays)
        guests = self._start_guests(image, stays) if self.topology.has_guests else self._start_agents(stays)
        for n, vm in enumerate(reversed(self.topology.vms)):  # VM2 forwards before VM1 is ready to send
            self.wait_booted(guests[vm.name])
            self.say(f"{vm.name}: starting {vm.program}")
            self.ask(vm.name, "start", program=vm.program, pages=PAGES, **self._given(n, vm, binaries[vm.name]))
        self._wait_links()

    def _given(self, n: int, vm: Vm, binary: Path) -> dict[str, Any]:
        """Options of a program; without a guest also its devices, and cores that the switch has not if there are more."""
        options = {"options": start_options(self.topology, vm, binary)}
        if self.topology.has_guests:
            return options | {"devices": [], "cores": []}
        cores = usable()
        first = cores[(len(self.topology.bridges) + n) % len(cores)]
        return options | {"devices": devices_of(vm, self.place.folder), "cores": [cores[0], first]}

    def _binary(self, vm: Vm, image: Path, build: Path) -> Path:
        return binary_of(vm.program, image, build, ring_keys(self.topology, vm.name))

    def _start_switch(self, stays: bool) -> None:
        if self.topology.switch == "linux":
            lay_linux(self.topology, self.place.namespace)
        else:
            start_dl3d(self.topology, self.place, built(TOP / "build" / "src" / "dl3d"), stays)

    def _start_guests(self, image: Path, stays: bool) -> dict[str, Started]:
        (image / "agent.sh").write_text(SCRIPT, encoding="utf-8")
        found = {}
        for name, words in commands(self.topology, self.place, image).items():
            whole = self.place.namespace.command(*words) if self.topology.switch == "linux" else words
            found[name] = start(self.place, name, whole, stays)
            self.say(f"starting {name} ({'emulated' if self.topology.is_emulated else 'KVM'})")
        return found

    def _start_agents(self, stays: bool) -> dict[str, Started]:
        names = [vm.name for vm in self.topology.vms]
        around = {"PYTHONPATH": str(TOP), "TMPDIR": str(self.place.folder)}
        command = ("env", *(f"{key}={value}" for key, value in around.items()), sys.executable, "-m", "dl3.lab.agent")
        return {name: start(self.place, name, [*command, str(self.serial(name))], stays) for name in names}

    def wait_booted(self, guest: Started) -> None:
        """Until its agent answers; QEMU says why not."""
        if not self.topology.has_guests:
            guest.wait_until(self.serial(guest.name).exists, "listen", BOOT_S)
            return
        console = self.place.folder / f"{guest.name}.console"

        def is_booted() -> bool:
            text = console.read_text(encoding="utf-8", errors="replace") if console.exists() else ""
            if "guest: left with" in text:
                raise Fault(f"{guest.name} ended early: {text.strip()[-500:]}")
            return "agent: ready" in text

        guest.wait_until(is_booted, "boot", BOOT_S)
        guest.wait_until(lambda: self._is_running(guest.name), "run", BOOT_S)

    def _is_running(self, name: str) -> bool:
        with suppress(Fault), monitor(self.place.folder / f"{name}.qmp") as file:
            return bool(ask_qmp(file, "query-status").get("status") == "running")
        return False

    def _wait_links(self) -> None:
        deadline = time.monotonic() + DRAIN_S
        while not self.ask(VM1, "counts")["is_up"]:
            if time.monotonic() > deadline:
                raise Fault(f"the cards of {VM1} have no links after {DRAIN_S:.0f} s")
            time.sleep(LOOK_S)

    def counts(self) -> Counted:
        """All counters; first those of VM1, so that none is ahead of the next place."""
        first = self.ask(VM1, "counts")
        switch = reader(self.topology, self.place)()
        second = self.ask(VM2, "counts")
        return Counted(
            Sender(first["sent"], first["refused"], first["came"], first["missed"]),
            switch,
            Middle(second["came"], second["missed"], second["dropped"], second["sent"]),
            first["is_done"],
            first["late"],
            first["p50_ns"],
        )

    def measure(self, pps: int, seconds: float, campaign: str, facts: dict[str, object]) -> LabRun:
        """One load: send, wait until each frame has gone on or is named, and count."""
        before = self.counts()
        mac = self.topology.vm(VM2).cards[0].mac
        options = {"mac": mac, "pps": pps, "seconds": seconds, "size": self.settings.frame_bytes}
        self.ask(VM1, "send", options=options)
        after = self._drained(before, seconds)
        return LabRun(
            at=now(),
            campaign=campaign,
            topology=self.topology,
            frame=str(self.settings.frame_bytes),
            asked_pps=float(pps),
            seconds=seconds,
            late=after.late,
            p50_ns=after.p50_ns,
            hops=after.hops_since(before),
            facts=facts,
        )

    def _drained(self, before: Counted, seconds: float) -> Counted:
        """The counters when nothing is under way: two readings are equal, and each loss is named."""
        time.sleep(seconds)
        deadline = time.monotonic() + DRAIN_S
        last: Counted | None = None
        while time.monotonic() < deadline:
            found = self.counts()
            if found.is_done and found == last and is_explained(found.hops_since(before)):
                return found
            last = found
            time.sleep(LOOK_S)
        if last is None or not last.is_done:
            raise Fault(f"{VM1} did not end its run within {DRAIN_S:.0f} s")
        return last  # what no counter names stands in the table


def down(place: Place) -> None:
    """Ask each QEMU to end, then remove everything."""
    for path in place.folder.glob("*.qmp"):
        with suppress(Fault, OSError), monitor(path) as file:
            ask_qmp(file, "quit")
    place.settle()


def keep(lab: Lab) -> None:
    """From now on the lab stays."""
    draft = lab.place.up_file.with_suffix(".draft")
    draft.write_text(Up(topology=lab.topology, settings=lab.settings).model_dump_json(), encoding="utf-8")
    draft.replace(lab.place.up_file)


def kept(place: Place, say: Say) -> Lab:
    """The lab that is up; UsageFault if there is none."""
    try:
        found = Up.model_validate_json(place.up_file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageFault(f"the lab {place.lab} is not up: run 'dl3 lab {place.lab} up' first") from error
    if len(place.processes()) < len(found.topology.vms):
        raise UsageFault(f"a guest of the lab {place.lab} has ended: run 'dl3 lab {place.lab} down', then 'up'")
    return Lab(place, found.topology, found.settings, say)


def settle_killed(place: Place, say: Say) -> None:
    """Remove what a killed command has left; UsageFault if the lab is up."""
    if place.up_file.exists():
        raise UsageFault(f"the lab {place.lab} is up: use 'dl3 lab {place.lab} measure', or end it with 'down'")
    if place.has_any():
        say(f"removing what a killed command of the lab {place.lab} has left")
        place.settle()
