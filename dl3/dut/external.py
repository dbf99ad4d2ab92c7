"""Any device between two ports: uses a running dl3gen and the streams that cross the device. Starts nothing."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dl3.campaign.streams import parsed_streams, read_streams
from dl3.control.client import DL3D, DL3GEN, Client, Program
from dl3.control.generator import StreamTexts
from dl3.control.remote import Machine
from dl3.control.replies import Reply
from dl3.dut.check import lost_streams, ways_of
from dl3.dut.kind import ALWAYS_HONOURED, check_honoured
from dl3.dut.there import dl3d_there, facts_there
from dl3.lab.pair import REPLY_TIMEOUT_S
from dl3.model.campaign import Ability, Setup, Traffic
from dl3.model.fault import Fault, UsageFault
from dl3.model.stream import Stream

OPTIONS = ("generator", "dut", "streams", "at", "version", "configuration")
NOBODY = "none"


def streams_of(generator: Client, setup: Setup, traffic: Traffic) -> tuple[Stream, ...]:
    """The streams of the traffic definition, or of the file in the option, or of dl3gen's configuration."""
    name, path = setup.dut.name, setup.dut.options.get("streams")
    if traffic.streams:
        return parsed_streams(traffic.streams, name)
    if path:
        return read_streams(Path(str(path)))
    given = generator.ask(StreamTexts, "streams").streams
    if not given:
        raise UsageFault(
            f"{name}: there are no streams: give a file with the option 'streams', or add some to dl3gen's file"
        )
    return parsed_streams(given, name)


def wrong(kind: str, option: str, value: object) -> str:
    """The error in a device option, as far as it can be detected before opening; '' if there is none."""
    if kind != KIND.name:
        return ""
    try:
        if option == "streams":
            read_streams(Path(str(value)))
        if option == "at":
            Machine.parse(str(value))
    except UsageFault as fault:
        return str(fault)
    return ""


def check_options(setup: Setup) -> None:
    """Reject unknown options."""
    for name in setup.dut.options:
        if name not in OPTIONS:
            raise UsageFault(
                f"{setup.dut.name}: the kind 'external' has no option '{name}'; it has {', '.join(OPTIONS)}"
            )


@dataclass(frozen=True)
class ExternalBed:
    """See dl3.dut.bed. Freezing has no effect: the device has its own cores."""

    generator: Client
    dut: Client | None
    streams: tuple[Stream, ...]
    facts: Mapping[str, object]
    at: Machine | None = None
    wire: str = "ports of the file"

    def freeze(self) -> None:
        """No effect: neither the device nor dl3gen was started by dl3."""

    def thaw(self) -> None:
        """No effect."""

    def reset_process(self) -> None:
        """Not possible from here."""
        raise Fault("dl3 cannot reset a device that it did not start: reset it manually while dl3gen sends")

    def reset_port(self) -> None:
        """Not possible from here."""
        raise Fault("dl3 cannot reset a port of a device that it did not start: unplug it while dl3gen sends")


def about(setup: Setup, dut: Client | None) -> dict[str, object]:
    """Information given by the user and by dl3d."""
    options = setup.dut.options
    said = {key: str(options.get(key, "not told")) for key in ("version", "configuration")}
    if dut:
        status = dut.ask(Reply, "status").model_dump()
        said["version"] = f"dl3d {status['version']}, {status['dpdk']}"
    return {"name": setup.dut.name, "kind": "external", **said}


def machine_of(setup: Setup) -> Machine | None:
    """The other machine named in the option."""
    options = setup.dut.options
    try:
        return Machine.parse(str(options["at"])) if "at" in options else None
    except UsageFault as fault:
        raise UsageFault(f"the option 'at' of '{setup.dut.name}': {fault}") from fault


def client_of(program: Program, option: str, socket: str) -> Client:
    """Client of a running program; errors refer to the device's option."""
    return Client(Path(socket), REPLY_TIMEOUT_S, replace(program, option=f"the option '{option}' of the device"))


def check_crossed(generator: Client, setup: Setup, given: tuple[Stream, ...]) -> None:
    """Fault if no frame of a stream is received."""
    if lost := lost_streams(generator, [stream.written() for stream in given]):
        raise Fault(
            f"{setup.dut.name} forwards nothing {ways_of(lost)}: look at its cables, routes and neighbours, and "
            "at the streams' dst_mac"
        )


@contextmanager
def tested(setup: Setup, at: Machine | None) -> Iterator[Client | None]:
    """The dl3d whose accounting is checked, on this machine or the other one, if the option gives its socket."""
    socket = str(setup.dut.options.get("dut", NOBODY))
    if socket == NOBODY:
        yield None
    elif not at:
        yield client_of(DL3D, "dut", socket)
    else:
        with dl3d_there(at, Path(socket), "the option 'dut' of the device") as client:
            yield client


@dataclass(frozen=True)
class External:
    """See dl3.dut.kind."""

    name: str = "external"

    @property
    def ability(self) -> Ability:
        """Nothing can be configured; each option accepts any text."""
        return Ability(honours=frozenset(ALWAYS_HONOURED), choices=dict.fromkeys(OPTIONS, ()))

    def missing(self, _options: Mapping[str, object], /) -> str:
        """Nothing needs to be installed here."""
        return ""

    def opened(self, setup: Setup, traffic: Traffic, _build: Path, /) -> AbstractContextManager[ExternalBed]:
        """Check the request immediately; verify on entry that frames pass."""
        check_honoured(setup, frozenset(("streams",)), traffic)
        check_options(setup)
        return self._crossed(setup, traffic, machine_of(setup))

    @contextmanager
    def _crossed(self, setup: Setup, traffic: Traffic, at: Machine | None) -> Iterator[ExternalBed]:
        generator = client_of(DL3GEN, "generator", str(setup.dut.options.get("generator", DL3GEN.socket)))
        given = streams_of(generator, setup, traffic)
        with tested(setup, at) as dut:
            facts = {"dut": about(setup, dut), "lab": {"wire": "ports of the file"}}
            if at:
                facts["other machine"] = facts_there(at)
            check_crossed(generator, setup, given)
            yield ExternalBed(generator, dut, given, facts, at)


KIND = External()
