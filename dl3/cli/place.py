"""Where a measurement runs: programs at given sockets or a lab of its own, and the file for the record."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dl3.bench.far import runner_of
from dl3.bench.site import ProgressListener, Run, facts_of, streams_of
from dl3.bench.stability import watch_of
from dl3.bench.workplace import BUILD, built
from dl3.bench.workplace import DL3D as DL3D_PROGRAM
from dl3.campaign.streams import read_streams
from dl3.cli.given import refuse_beyond_lab
from dl3.cli.printing import err
from dl3.control.client import DL3D, DL3GEN, Client
from dl3.control.remote import Machine
from dl3.control.replies import Reply
from dl3.dut.dl3d import Dl3d
from dl3.dut.there import dl3d_there, facts_there
from dl3.host.noise import Watch
from dl3.lab.links import Flows
from dl3.lab.memif import MemifSettings, memif_lab
from dl3.model.campaign import Direction
from dl3.model.fault import Fault, UsageFault
from dl3.record.journal import now
from dl3.trial.order import Site

REPLY_TIMEOUT_S = 30.0  # dl3gen may have to set up millions of flows
NOBODY = "none"
ONE_WAY: Direction = "unidirectional"


@dataclass(frozen=True)
class Place:
    """The settings from the options."""

    generator: Path
    dut: str
    dut_name: str
    is_lab: bool
    streams: Path | None
    record: Path | None
    at: str = ""  # the machine of the device under test, if it is another one
    direction: Direction = ONE_WAY  # of the lab's streams


@contextmanager
def run_at(place: Place, seconds: float, listener: ProgressListener) -> Iterator[Run]:
    """Everything that trials need, for their duration."""
    given = read_streams(place.streams) if place.streams else None
    refuse_direction(place)
    with site_at(place) as (site, watch):
        record, streams = place.record or new_record(site.campaign), streams_of(site.generator, given)
        runner = runner_of(site, Machine.parse(place.at) if place.at else None)
        yield Run(runner, streams, record, seconds, listener=listener, look=watch.look)


@contextmanager
def site_at(place: Place) -> Iterator[tuple[Site, Watch]]:
    """The running programs, or those of a lab, and an observer of their machine."""
    campaign = now()
    if place.at:
        with site_with(place, Machine.parse(place.at), campaign) as site:
            yield site, Watch()
        return
    if not place.is_lab:
        generator, dut = Client(place.generator, REPLY_TIMEOUT_S, DL3GEN), tested(place.dut)
        name = place.dut_name or ("dl3d" if dut else "device")
        yield Site(generator, dut, name, campaign, facts_of(generator, dut, BUILD)), Watch()
        return
    flows = Flows(is_both_ways=place.direction != ONE_WAY)  # also if meshed: there are two ports
    with memif_lab(MemifSettings(Dl3d(built(DL3D_PROGRAM, "make")), flows)) as lab:
        generator = Client(lab.generator.path, REPLY_TIMEOUT_S, DL3GEN)
        facts = {**facts_of(generator, lab.dut, BUILD), "lab": lab.facts()}
        site = Site(generator, lab.dut, place.dut_name or lab.device.name, campaign, facts)
        yield site, watch_of(lab, lab.cores, lab.tester.build)


def fit_for(sizes: str, place: Place) -> Place:
    """The place, checked for these frames: the lab's own streams support those that its links carry."""
    if place.is_lab and not place.streams:
        refuse_beyond_lab(sizes)
    return place


def refuse_direction(place: Place) -> None:
    """Streams written by the user have their own direction."""
    if place.direction != ONE_WAY and (place.streams or not place.is_lab):
        whose = f"{place.streams}" if place.streams else "dl3gen's file"
        raise UsageFault(
            f"--direction {place.direction} applies to the lab's own streams, but those of {whose} are sent: omit it"
        )


@contextmanager
def site_with(place: Place, at: Machine, campaign: str) -> Iterator[Site]:
    """dl3gen here, dl3d on another machine, or only that machine's facts if the device is something else."""
    if place.is_lab:
        raise UsageFault("--lab and --at are mutually exclusive: --lab runs everything on the local machine")
    with ExitStack() as stack:
        dut = None if place.dut == NOBODY else stack.enter_context(dl3d_there(at, Path(place.dut or DL3D.socket)))
        generator = Client(place.generator, REPLY_TIMEOUT_S, DL3GEN)
        facts = {**facts_of(generator, dut, BUILD), "other machine": facts_there(at)}
        name = place.dut_name or ("dl3d" if dut else "device")
        yield Site(generator, dut, name, campaign, facts)


def tested(option: str) -> Client | None:
    """The dl3d whose packet accounting is checked: the named one, else the one that runs here, else none."""
    if option == NOBODY:
        return None
    client = Client(Path(option) if option else DL3D.socket, program=replace(DL3D, option="--dut"))
    try:
        client.ask(Reply, "status")
    except Fault:
        if option:
            raise
        say(
            f"warning: no dl3d at {DL3D.socket}; only the counters of dl3gen are checked; use --dut PATH for a dl3d DUT"
        )
        return None
    say(f"dl3d replies at {client.path}: its packet accounting is checked too")
    return client


def device_of(site: Site) -> str:
    """The device under test, for the heading of a table; of dl3d also the idle mode of its workers."""
    forwarder = site.facts.get("forwarder")
    idle = forwarder.get("idle") if isinstance(forwarder, Mapping) else None
    return f"{site.dut_name} (idle: {idle})" if idle else site.dut_name


def say(text: str) -> None:
    """One line of progress for the user."""
    err.print(text, markup=False, highlight=False, soft_wrap=True)


def new_record(campaign: str) -> Path:
    """A new file for this command, in the build or in the current folder."""
    name = f"dl3gen-{campaign[:19].replace(':', '')}.jsonl"
    return BUILD / "records" / name if BUILD.is_dir() else Path.cwd() / name
