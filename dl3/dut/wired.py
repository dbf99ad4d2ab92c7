"""Testbeds of the lab: dl3gen linked to a device started for it."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dl3.control.client import Client
from dl3.dut.check import check_forwards
from dl3.dut.kind import ALWAYS_HONOURED, Subject, check_honoured, chosen_options
from dl3.host.cores import listed, usable
from dl3.host.hugepages import reserved
from dl3.host.root import need_root
from dl3.lab.cables import cables
from dl3.lab.endpoint import Endpoint, Wire
from dl3.lab.links import ENDS, Links
from dl3.lab.pair import Pair, Tester, distance_ns, pair
from dl3.lab.vhost import vhost
from dl3.model.campaign import Ability, Setup, Traffic
from dl3.model.fault import Fault, UsageFault
from dl3.model.stream import Stream
from dl3.model.traffic import streams_for

GENERATOR_MIB = 512  # reserved for dl3gen, which allocates what it needs
BIGGEST_RING = 1 << 14  # limit of memif
MOST_BYTES = 1518  # including the FCS: memif and veth have an MTU of 1500


def as_they_are(_options: Mapping[str, str], streams: Sequence[Stream]) -> tuple[Stream, ...]:
    """The streams of a device that forwards frames as they are."""
    return tuple(streams)


@dataclass(frozen=True)
class WiredBed:
    """See dl3.dut.bed."""

    lab: Pair
    streams: tuple[Stream, ...]
    about: Mapping[str, object]
    not_told: frozenset[str]  # facts of the lab that do not apply to this kind of device
    at: None = None

    @property
    def generator(self) -> Client:
        """Client of dl3gen."""
        return self.lab.generator

    @property
    def dut(self) -> Client | None:
        """Client of dl3d, if the device is one."""
        return self.lab.dut

    @property
    def wire(self) -> str:
        """Kind of port."""
        return self.lab.endpoint.links.name

    @property
    def facts(self) -> Mapping[str, object]:
        """Facts of the device and the lab."""
        reported = {key: value for key, value in self.lab.facts().items() if key not in self.not_told}
        return {"dut": dict(self.about), "lab": reported}

    def freeze(self) -> None:
        """Suspend all programs."""
        self.lab.freeze()

    def thaw(self) -> None:
        """Resume them."""
        self.lab.thaw()

    def reset_process(self) -> None:
        """Kill and restart; not possible if rings are shared with dl3gen."""
        if self.wire != "veth":
            raise Fault(
                f"{self.lab.device.name} at {self.wire} links cannot be reset, because dl3gen would poll a dead peer: "
                "give the device the option 'wire: veth', if it has that"
            )
        self.lab.device.restart()

    def reset_port(self) -> None:
        """Reset the first port."""
        self.lab.device.reset_port()


@dataclass(frozen=True)
class WiredKind:
    """See dl3.dut.kind. `choices` are its options and their values, the default first."""

    name: str
    make: Callable[[Setup, Mapping[str, str], Path], Subject]  # from its options and the build folder
    needs: Callable[[], str]  # returns what is not installed, see Kind.missing
    honours: frozenset[str]  # supported fields of Setup
    choices: Mapping[str, tuple[str, ...]]
    resets_over: frozenset[str] = frozenset(("veth",))  # wires that survive a reset of the device
    is_router: bool = False  # Linux itself forwards
    extra_mib: int = 0  # huge page memory besides packet buffers
    forwards_white_paper: bool = False  # frames with the white paper's addresses
    # The device for this traffic, if that makes a difference; from the device, options, traffic and build folder.
    for_traffic: Callable[[Any, Mapping[str, str], Traffic, Path], Subject] | None = None
    # The streams that it gets with these options, where they are not the user's own.
    carried: Callable[[Mapping[str, str], Sequence[Stream]], tuple[Stream, ...]] = as_they_are
    most_in_mode: Mapping[str, int] = field(default_factory=dict)  # see Ability

    @property
    def ability(self) -> Ability:
        """What can be configured, as checked when it is opened."""
        return Ability(
            honours=self.honours.union(ALWAYS_HONOURED, self._sent),
            choices=self.choices,
            resets_over=self.resets_over,
            most_bytes=MOST_BYTES,
            most_in_mode=self.most_in_mode,
        )

    def missing(self, _options: Mapping[str, object], /) -> str:
        """Independent of the options."""
        return self.needs()

    def opened(self, setup: Setup, traffic: Traffic, build: Path, /) -> AbstractContextManager[WiredBed]:
        """Check the request immediately; start both sides on entry and verify that frames pass in both directions."""
        check_honoured(setup, self.ability.honours, traffic)
        options = chosen_options(setup, self.choices)
        if options["wire"] != "veth":
            ring_slots(setup)
        cores_for(setup, Tester(tester_cores(setup), build=build))
        subject = self.make(setup, options, build)
        if self.for_traffic:
            subject = self.for_traffic(subject, options, traffic, build)
        return self._started(setup, traffic, build, options, subject)

    @contextmanager
    def _started(
        self, setup: Setup, traffic: Traffic, build: Path, options: Mapping[str, str], subject: Subject
    ) -> Iterator[WiredBed]:
        tester = Tester(tester_cores(setup), build=build)
        cores, found_ns = cores_for(setup, tester), list[float]()
        with pages_for(setup, self._own_mib(setup)), self._wire(options["wire"], setup) as wire:
            endpoint = seat_of(setup, cores, wire)
            found_ns.append(distance_ns(build, tester.cores[0], cores[0]))
            with pair(subject.started, endpoint, tester, found_ns) as lab:
                first = self.carried(options, streams_for(first_flows(traffic), ENDS))
                check_forwards(lab, [one.written() for one in first])
                about = {"name": setup.dut.name, "kind": self.name, "options": options}
                not_told = frozenset(Setup.model_fields) - self.honours
                streams = streams_for(traffic, ENDS)
                measured = streams if traffic.streams else self.carried(options, streams)
                yield WiredBed(lab, measured, {**about, **subject.about(endpoint, lab.device)}, not_told)
            found_ns.append(distance_ns(build, tester.cores[0], cores[0]))

    @property
    def _sent(self) -> frozenset[str]:
        return frozenset(Traffic.model_fields) - (frozenset() if self.forwards_white_paper else {"addresses"})

    def _own_mib(self, setup: Setup) -> int:
        return setup.memory_mib + self.extra_mib if "memory_mib" in self.honours and setup.page_kib != 4 else 0

    def _wire(self, name: str, setup: Setup) -> AbstractContextManager[Wire]:
        if name == "veth":
            return cables(setup.descriptors, self.is_router)
        slots = ring_slots(setup)
        return vhost(slots) if name == "vhost" else memif_links(slots)


def first_flows(traffic: Traffic) -> Traffic:
    """The first flow in either direction of such traffic, or of the usual one if the streams are user-defined."""
    return Traffic(addresses=traffic.addresses)


def ring_slots(setup: Setup) -> int:
    """Ring size of memif and vhost."""
    slots = setup.descriptors
    if slots & (slots - 1) or not 1 < slots <= BIGGEST_RING:
        raise UsageFault(
            f"{setup.dut.name}: descriptors = {slots}, but a ring has a power of two, to {BIGGEST_RING}, of slots"
        )
    return slots


@contextmanager
def memif_links(slots: int) -> Iterator[Wire]:
    """A folder with their sockets."""
    with tempfile.TemporaryDirectory(prefix="dl3-memif-") as folder:
        yield Links(Path(folder), slots.bit_length() - 1, is_zero_copy=True)


@contextmanager
def pages_for(setup: Setup, own: int) -> Iterator[None]:
    """Reserve huge pages for both sides."""
    need_root(f"{setup.dut.name} beside dl3gen")
    if setup.page_kib not in (4, 2048, 1 << 20):
        raise UsageFault(f"{setup.dut.name}: page_kib = {setup.page_kib}; there are pages of 4, 2048 and 1048576 KiB")
    if setup.page_kib == 2048:
        with reserved((own + GENERATOR_MIB) // 2):
            yield
        return
    with reserved(GENERATOR_MIB // 2), reserved(-(-own // 1024), 1 << 20):
        yield


def tester_cores(setup: Setup) -> tuple[int, ...]:
    """Cores of dl3gen: the given ones, or the first one not given to the device."""
    free = (core for core in usable() if core not in setup.dut_cores)
    return setup.generator_cores or (next(free, usable()[0]),)


def cores_for(setup: Setup, tester: Tester) -> tuple[int, ...]:
    """Cores of the device: the given ones, or the first ones not used by dl3gen."""
    there = usable()
    free = [core for core in there if core not in tester.cores]
    cores = setup.dut_cores or tuple(free[: setup.cores])
    if len(cores) < setup.cores:
        raise UsageFault(
            f"{setup.dut.name}: {setup.cores} cores are needed besides dl3gen's, this machine has {len(free)}: use "
            "fewer, or list them in dut_cores"
        )
    for core in (*cores, *tester.cores):
        if core not in there:
            raise UsageFault(f"{setup.dut.name}: core {core} does not exist; available cores: {listed(there)}")
    return cores


def seat_of(setup: Setup, cores: tuple[int, ...], wire: Wire) -> Endpoint:
    """The parameters passed to the device."""
    return Endpoint(
        links=wire,
        cores=cores,
        burst=setup.burst,
        memory_mib=setup.memory_mib,
        page_kib=setup.page_kib,
        channels=setup.channels,
        descriptors=setup.descriptors,
    )
