"""A lab: brought up, measured, taken down."""

import sys
import time
from collections.abc import Callable, Mapping
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
from dl3.lab.kind import PAGES, Load, Settings, devices_of, ring_keys, start_options
from dl3.lab.pair import TOP
from dl3.lab.serial import ask
from dl3.lab.stations import Middle, Sender, SwitchCounts, hops, is_explained
from dl3.labs.nodes import NODES
from dl3.model.fault import Fault, UsageFault
from dl3.model.lab import Hop, LabRun, Station, Topology
from dl3.model.noun import Noun
from dl3.record.journal import now

Say = Callable[[str], None]
BOOT_S, ANSWER_S = 600.0, 600.0  # only end what hangs: an emulated guest beside a busy neighbour is slow
DRAIN_S = 300.0
LOOK_S = 0.2
MOST_EQUAL = 50  # readings, after which no counter will name what is missing
MIDDLE = ("came", "missed", "dropped", "sent")
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

    topology: Topology
    sender: Sender
    switch: SwitchCounts
    others: Mapping[str, Middle]
    is_done: bool
    late: int
    p50_ns: float

    def hops_since(self, before: "Counted") -> tuple[Hop, ...]:
        """The places since then; the sender counts each run by itself."""
        others = {name: middle.since(before.others[name]) for name, middle in self.others.items()}
        return hops(self.topology, self.sender, self.switch.since(before.switch), others)


def need_memory(topology: Topology) -> None:
    """UsageFault if the guests do not fit."""
    needed = sum(vm.memory_mib for vm in topology.guests) + SPARE_MIB
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
    return {vm.name: lab_command(topology, vm, place.folder, booted) for vm in topology.guests}


@dataclass(frozen=True)
class Lab:
    """The lab at a place."""

    place: Place
    topology: Topology
    settings: Settings
    say: Say

    def serial(self, name: str) -> Path:
        """The line to the agent of a station."""
        return self.place.folder / f"{name}.serial"

    def ask(self, name: str, do: str, **keys: Any) -> dict[str, Any]:
        """Ask the agent of a station."""
        try:
            return ask(self.serial(name), do, ANSWER_S, **keys)
        except Fault as fault:
            raise Fault(f"{name}: {fault}") from fault

    @property
    def stations(self) -> list[Station]:
        """Those with a program of their own; the sender comes last, so that others forward before it is ready."""
        return [one for one in reversed(self.topology.stations) if not one.part_of]

    def up(self, stays: bool) -> None:
        """Start everything; guests boot at the same time."""
        need_root("the lab")
        image = cache_folder()
        if self.topology.guests:
            need_packages(PACKAGES)
            need_memory(self.topology)
            made(image, self.say)
        image.mkdir(parents=True, exist_ok=True)
        build = build_for(self.topology, self.say)
        binaries = {one.name: self._binary(one, image, build) for one in self.stations}
        with Held():
            self.place.folder.mkdir()
        node = NODES[self.topology.switch]
        node.start(self.topology, self.place, stays)
        started = self._start_guests(image, stays) | self._start_agents(stays)
        for n, one in enumerate(self.stations):
            self.wait_booted(started, one)
            self.say(f"{one.name}: starting {one.program}")
            self.ask(one.name, "start", program=one.program, pages=PAGES, **self._given(n, one, binaries[one.name]))
        if not self.topology.guests:
            node.join(self.topology, self.place)
        self._wait_links()

    def _given(self, n: int, one: Station, binary: Path) -> dict[str, Any]:
        """Options of a program; without a guest also its devices, and cores that the switch has not if there are more."""
        options = {"options": start_options(self.topology, one, binary)}
        if one.is_guest or self.topology.wire == "veth":
            return options | {"devices": [], "cores": []}
        cores = usable()
        first = cores[(len(self.topology.legs) + n) % len(cores)]
        return options | {"devices": devices_of(self.topology, one, self.place.folder), "cores": [cores[0], first]}

    def _binary(self, one: Station, image: Path, build: Path) -> Path:
        found = build if one.is_guest else TOP / "build"
        return binary_of(one.program, image, found, ring_keys(self.topology, one))

    def _start_guests(self, image: Path, stays: bool) -> dict[str, Started]:
        if self.topology.guests:
            (image / "agent.sh").write_text(SCRIPT, encoding="utf-8")
        found = {}
        for name, words in commands(self.topology, self.place, image).items():
            whole = self.place.namespace.command(*words) if self.topology.wire == "tap" else words
            found[name] = start(self.place, name, whole, stays)
            self.say(f"starting {name} ({'emulated' if self.topology.is_emulated else 'KVM'})")
        return found

    def _start_agents(self, stays: bool) -> dict[str, Started]:
        around = {"PYTHONPATH": str(TOP), "TMPDIR": str(self.place.folder)}
        command = ("env", *(f"{key}={value}" for key, value in around.items()), sys.executable, "-m", "dl3.lab.agent")
        found = {}
        for name in (one.name for one in self.stations if not one.is_guest):
            words = [*command, str(self.serial(name))]
            namespaces = {"tap": self.place.namespace, "veth": self.place.host(name)}
            inside = namespaces.get(self.topology.wire)
            found[name] = start(self.place, name, inside.command(*words) if inside else words, stays)
        return found

    def wait_booted(self, every: Mapping[str, Started], one: Station) -> None:
        """Until its agent answers; QEMU says why not. Another guest that ends meanwhile is not waited for."""
        started = every[one.name]
        if not one.is_guest:
            started.wait_until(self.serial(one.name).exists, "listen", BOOT_S)
            return
        console = self.place.folder / f"{one.name}.console"

        def is_booted() -> bool:
            for other in every.values():
                other.check_alive()
            text = console.read_text(encoding="utf-8", errors="replace") if console.exists() else ""
            if "guest: left with" in text:
                raise Fault(f"{one.name} ended early: {text.strip()[-500:]}")
            return "agent: ready" in text

        started.wait_until(is_booted, "boot", BOOT_S)
        started.wait_until(lambda: self._is_running(one.name), "run", BOOT_S)

    def _is_running(self, name: str) -> bool:
        with suppress(Fault), monitor(self.place.folder / f"{name}.qmp") as file:
            return bool(ask_qmp(file, "query-status").get("status") == "running")
        return False

    def _wait_links(self) -> None:
        deadline = time.monotonic() + DRAIN_S
        while not self.ask(self.topology.sender.name, "counts")["is_up"]:
            if time.monotonic() > deadline:
                raise Fault(f"the cards of {self.topology.sender.name} have no links after {DRAIN_S:.0f} s")
            time.sleep(LOOK_S)

    def counts(self) -> Counted:
        """All counters; first those of the sender, so that none is ahead of the next place."""
        first = self.ask(self.topology.sender.name, "counts")
        switch = NODES[self.topology.switch].read(self.topology, self.place)
        others = {one.name: self.ask(one.name, "counts") for one in self.stations if one != self.topology.sender}
        return Counted(
            self.topology,
            Sender(first["sent"], first["refused"], first["came"], first["missed"]),
            switch,
            {name: Middle(*(one[key] for key in MIDDLE)) for name, one in others.items()},
            first["is_done"],
            first["late"],
            first["p50_ns"],
        )

    def measure(self, load: Load, seconds: float, campaign: str, facts: dict[str, object]) -> LabRun:
        """One load: send, wait until each frame has gone on or is named, and count."""
        before = self.counts()
        stream = dict(self.topology.stream)
        options = {"stream": stream, "pps": load.pps, "seconds": seconds, "size": load.frame_bytes}
        self.ask(self.topology.sender.name, "send", options=options)
        after = self._drained(before, seconds)
        return LabRun(
            at=now(),
            campaign=campaign,
            topology=self.topology,
            frame=str(load.frame_bytes),
            asked_pps=float(load.pps),
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
        n_equal = 0
        while time.monotonic() < deadline and n_equal < MOST_EQUAL:
            found = self.counts()
            n_equal = n_equal + 1 if found.is_done and found == last else 0
            if n_equal and is_explained(found.hops_since(before)):
                return found
            last = found
            time.sleep(LOOK_S)
        if last is None or not last.is_done:
            raise Fault(f"{self.topology.sender.name} did not end its run within {DRAIN_S:.0f} s")
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
    if len(place.processes()) < sum(not one.part_of for one in found.topology.stations):
        raise UsageFault(f"a program of the lab {place.lab} has ended: run 'dl3 lab {place.lab} down', then 'up'")
    return Lab(place, found.topology, found.settings, say)


def settle_killed(place: Place, say: Say) -> None:
    """Remove what a killed command has left; UsageFault if the lab is up."""
    if place.up_file.exists():
        raise UsageFault(f"the lab {place.lab} is up: use 'dl3 lab {place.lab} measure', or end it with 'down'")
    if place.has_any():
        say(f"removing what a killed command of the lab {place.lab} has left")
        place.settle()
