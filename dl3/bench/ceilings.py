"""dl3gen and testpmd's own generator, each over a memif link into the same sink on another core."""

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import yaml

from dl3.bench.generators import DOING, FLOWS, FLOWS_OF_TESTPMD, FRAME_BYTES, begin, stream
from dl3.bench.onecore import Job
from dl3.bench.sides import Contestant, Entry, Terms, march_of_build
from dl3.bench.twocores import NoRow
from dl3.bench.workplace import BUILD, Workplace, built
from dl3.control.client import Client
from dl3.host.cores import usable
from dl3.host.hugepages import reserved
from dl3.lab.links import GENERATOR_MACS, NAMES, Links
from dl3.lab.pair import links_are_up
from dl3.lab.process import Process
from dl3.model.fault import Fault
from dl3.model.sample import Sample
from dl3.record.facts import last_march
from dl3.record.machine import output_of

PORTABLE = "peers/portable"
PAGES = 1024  # of 2 MiB, for both programs
RING_BITS = 11
TESTPMD_MIB = 512
START_SECONDS = 30.0
RATE = re.compile(r"Rx-pps:\s+(\d+)")  # what the sink prints each second
ROW_OF_SINK = "64-byte frames into testpmd rxonly over memif, a core each; Mpps that the sink counted; dl3gen: "
OURS = f"{FLOWS:,} flows, each frame with stamp and UDP checksum; testpmd "
ROW_OF_CEILING = f"{ROW_OF_SINK}{OURS}txonly: {FLOWS_OF_TESTPMD} flows, UDP checksum 0"
ROW_OF_FLOWGEN_CEILING = f"{ROW_OF_SINK}{OURS}flowgen: {FLOWS:,} flows, IP checksum, UDP checksum 0"


@dataclass
class Sending:
    """A generator and its sink. Neither polls a peer that has left, so they stand still and go on together."""

    generator: Process
    sink: Process

    def pause(self) -> None:
        """Stand still."""
        self.generator.freeze()
        self.sink.freeze()

    def resume(self) -> None:
        """The sink first."""
        self.sink.thaw()
        self.generator.thaw()

    def counted(self) -> list[int]:
        """Frames per second, of each second since the start."""
        return [int(rate) for rate in RATE.findall(self.sink.log.read_text(encoding="utf-8", errors="replace"))]

    def measure(self, seconds: float) -> Sample:
        """The median of so many seconds of the sink's; the first one began before."""
        wanted = len(self.counted()) + 1 + max(1, round(seconds))
        before, start = self.generator.busy_seconds(), time.monotonic()
        self.sink.wait_until(lambda: len(self.counted()) >= wanted, f"counted {seconds:.0f} s", START_SECONDS + seconds)
        passed = time.monotonic() - start
        rate = float(median(self.counted()[wanted - max(1, round(seconds)) : wanted]))
        if not rate:
            raise Fault(f"{self.generator.name} sent nothing over memif: {self.generator.last_words()}")
        share = (self.generator.busy_seconds() - before) / passed
        return Sample(passed, min(share, 1.0), rate, rate, share * tsc_hz() / rate)


def tsc_hz() -> float:
    """About how fast the TSC counts, as the kernel measured it; 0 where it does not say."""
    found = re.search(r"cpu MHz\s*:\s*([0-9.]+)", Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace"))
    return float(found[1]) * 1e6 if found else 0.0


def testpmd(device: str, core: int, prefix: str, *doing: str) -> tuple[str, ...]:
    """The distribution's testpmd on one end of a link; its first lcore only keeps time."""
    return (
        *(
            "taskset",
            "--cpu-list",
            str(core),
            "stdbuf",
            "-oL",
            "dpdk-testpmd",
            "--no-pci",
            "--no-telemetry",
            "--in-memory",
            "--single-file-segments",
        ),
        *("-m", str(TESTPMD_MIB), "--vdev", device, "--lcores", f"0@{core},1@{core}", "--file-prefix", prefix, "--"),
        *("--nb-cores=1", "--auto-start", "--stats-period=1", "--no-lsc-interrupt", "--disable-link-check"),
        *(f"--rxd={1 << RING_BITS}", f"--txd={1 << RING_BITS}", *doing),
    )


@dataclass(frozen=True)
class Start:
    """What a generator is started with."""

    links: Links
    terms: Terms


def start_testpmd(start: Start, mode: str) -> Process:
    """Many flows, as one of its modes makes them."""
    doing = (*DOING[mode], f"--txpkts={FRAME_BYTES}", f"--burst={start.terms.burst}")
    command = testpmd(start.links.device(0, "client"), start.terms.core, "dl3-peer-ceiling", *doing)
    return Process("testpmd", command, start.links.folder / "generator.log")


def start_dl3gen(start: Start) -> Process:
    """A million flows, at once."""
    folder = start.links.folder
    port = {"name": "wire", "device": start.links.device(0, "client"), "mac": GENERATOR_MACS[0]}
    whole = {
        "ports": [port | start.links.buffers()],
        "workers": [{"core": start.terms.core}],
        "burst": start.terms.burst,
        "memory": {"hugepages": "require"},
        "control": {"socket": str(folder / "dl3gen.sock")},
        "streams": [stream("flows")],
    }
    file = folder / "dl3gen.yaml"
    file.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    program = built(BUILD / PORTABLE / "src" / "dl3gen", "tools/build-peers")
    command = ("taskset", "--cpu-list", str(start.terms.core), str(program), str(file))
    process = Process("dl3gen", command, folder / "generator.log")
    client = Client(folder / "dl3gen.sock")
    process.wait_until(lambda: links_are_up(client), "had its link up", START_SECONDS)
    begin(client.path)
    return process


@contextmanager
def sending(generate: Callable[[Start], Process], terms: Terms) -> Iterator[Sending]:
    """The sink on another core, then the generator; they end in the order that memif survives."""
    others = sorted(set(usable()) - {terms.core})
    if not others:
        raise NoRow("no row generator-memif: it needs a second core for the sink")
    with reserved(PAGES), tempfile.TemporaryDirectory(prefix="dl3-ceiling-") as name:
        links = Links(Path(name), RING_BITS, is_zero_copy=True)
        command = testpmd(links.device(0, "server"), others[0], "dl3-sink-ceiling", "--forward-mode=rxonly")
        sink, generator = Process("testpmd rxonly", command, links.folder / "sink.log"), None
        try:
            sink.wait_until(links.socket(0).exists, f"listened at {NAMES[0]}", START_SECONDS)
            generator = generate(Start(links, terms))
            both = Sending(generator, sink)
            sink.wait_until(lambda: any(both.counted()[-1:]), "received something", START_SECONDS)
            yield both
        finally:
            end(sink, generator)


def end(sink: Process, generator: Process | None) -> None:
    """The generator stands still while the sink ends, and never goes on."""
    if generator:
        generator.freeze()
    try:
        sink.thaw()
        sink.stop()
    finally:
        if generator:
            generator.kill()


def contestant_of(entry: Entry, terms: Terms, march: str, generate: Callable[[Start], Process]) -> Contestant:
    """A side that brings its own sink."""
    job = Job(entry.program, (entry.program,), Path("memif"), core=terms.core)
    return Contestant(job, march, lambda: sending(generate, terms))


def make_dl3gen_over_memif(entry: Entry, terms: Terms, _place: Workplace) -> Contestant:
    """As built for testpmd."""
    return contestant_of(entry, terms, march_of_build(PORTABLE), start_dl3gen)


def make_testpmd_over_memif(entry: Entry, terms: Terms, _place: Workplace) -> Contestant:
    """The distribution's; mode 'flows' or 'flowgen'."""
    march = last_march(output_of("pkg-config", "--cflags", "libdpdk"))
    return contestant_of(entry, terms, march, lambda start: start_testpmd(start, entry.mode))
