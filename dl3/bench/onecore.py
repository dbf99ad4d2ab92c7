"""Runs a DPDK program on one core with the one-core plugin and samples its rate."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from dl3.bench.workplace import Workplace
from dl3.host.cores import listed, may_use, usable
from dl3.model.fault import Fault, UsageFault
from dl3.model.sample import Reading, Sample

START_SECONDS = 300.0  # a peer may load 33,554,432 flows before its first packet
STARTED_PACKETS = 100_000
SETTLE_SECONDS = 0.3
POLL_SECONDS = 0.02
QUIT_SECONDS = 3.0
FIRST_MAC = "02:00:00:00:00:01"


@dataclass(frozen=True)
class Job:
    """A program to measure: its command, and the plugin's input."""

    name: str
    command: tuple[str, ...]
    table: Path
    core: int = 0
    max_burst: int | None = None  # frames per poll; None: as many as the program asks for
    ring: int | None = None  # descriptors: frames arrive at the highest lossless rate of such a ring; None: always
    source_port: int = 0
    back_port: int | None = None  # receives the way back of a table with MAC addresses
    back_until: Path | None = None  # as soon as this is there, the way back ends
    outer: Path | None = None  # headers around frames on their way back, or around all if there is no way back
    mac: str = FIRST_MAC
    is_stamped: bool = False  # frames that dl3gen's sink recognises as its own
    is_sink: bool = False  # sends nothing; its rate is the receive rate
    begin: Callable[[], bool] | None = None  # starts the run; called again until it succeeds


def environment(job: Job, stats: Path) -> dict[str, str]:
    """Environment variables added to the command; the folder of `stats` is removed at the end."""
    added = {
        "ONECORE_TABLE": str(job.table),
        "ONECORE_STATS": str(stats),
        "ONECORE_SOURCE": str(job.source_port),
        "ONECORE_MAC": job.mac,
        "RUNTIME_DIRECTORY": str(stats.parent),  # where EAL creates its runtime folder and leaves it behind
    }
    if job.back_port is not None:
        added["ONECORE_BACK"] = str(job.back_port)
    if job.back_until is not None:
        added["ONECORE_BACK_UNTIL"] = str(job.back_until)
    if job.outer is not None:
        added["ONECORE_OUTER"] = str(job.outer)
    if job.max_burst is not None:
        added["ONECORE_BURST"] = str(job.max_burst)
    if job.ring is not None:
        added["ONECORE_RING"] = str(job.ring)
    if job.is_stamped:
        added["ONECORE_STAMP"] = "0"
    return added


def fill_in(command: Sequence[str], places: Mapping[str, str]) -> tuple[str, ...]:
    """The command with each '{word}' replaced by the path of that name."""
    done = []
    for word in command:
        for name, place in places.items():
            word = word.replace("{" + name + "}", place)
        done.append(word)
    return tuple(done)


@dataclass
class Runner:
    """A started program. Its standard input stays open, because some programs exit at end of file."""

    job: Job
    process: subprocess.Popen[bytes]
    stats: Path
    log: Path
    is_paused: bool = field(default=False)

    def read(self) -> Reading | None:
        """The latest counters, or None before the first."""
        try:
            reading = Reading.parse(self.stats.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        return replace(reading, sent=reading.received) if reading and self.job.is_sink else reading

    def last_words(self) -> str:
        """The end of the program's output."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(f"    {line}" for line in lines[-8:] or ["(it printed nothing)"])

    def check_alive(self) -> None:
        """Fault if the program has exited."""
        if self.process.poll() is not None:
            raise Fault(
                f"{self.job.name} exited with status {self.process.returncode} while it was measured; "
                f"its last lines were\n{self.last_words()}"
            )

    def begin(self) -> None:
        """Start the run, if the program does not start by itself."""
        deadline = time.monotonic() + START_SECONDS
        while self.job.begin and not self.job.begin():
            self.check_alive()
            if time.monotonic() > deadline:
                raise Fault(f"{self.job.name} was not ready within {START_SECONDS:.0f} s:\n{self.last_words()}")
            time.sleep(POLL_SECONDS)

    def wait_for(self, sent: int, seconds: float) -> Reading:
        """Wait until a new reading shows at least `sent` packets."""
        now_ns, deadline = time.monotonic_ns(), time.monotonic() + seconds
        while time.monotonic() < deadline:
            reading = self.read()
            if reading and reading.time_ns > now_ns and reading.sent >= sent:
                return reading
            self.check_alive()
            time.sleep(POLL_SECONDS)
        raise Fault(
            f"{self.job.name} sent fewer than {sent} packets in {seconds:.0f} s; "
            f"its last lines were\n{self.last_words()}"
        )

    def measure(self, seconds: float) -> Sample:
        """The rates over `seconds`, after a short time to settle."""
        time.sleep(SETTLE_SECONDS)
        first = self.wait_for(0, QUIT_SECONDS)
        time.sleep(seconds)
        return Sample.between(first, self.wait_for(0, QUIT_SECONDS), is_paced=self.job.ring is not None)

    def pause(self) -> None:
        """Suspend the program; another one may then use the core."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        """Resume it."""
        os.killpg(self.process.pid, signal.SIGCONT)
        self.is_paused = False

    def quit(self) -> None:
        """Stop the program, with increasingly strong signals."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is not None:
                return
            os.killpg(self.process.pid, number)
            os.killpg(self.process.pid, signal.SIGCONT)
            try:
                self.process.wait(QUIT_SECONDS)
            except subprocess.TimeoutExpired:
                continue


def check_possible(job: Job) -> None:
    """UsageFault if the program or the core does not exist."""
    if not shutil.which(job.command[0]):
        raise UsageFault(f"program {job.command[0]} not found: specify its path, or a name on the PATH")
    if not may_use(job.core):
        raise UsageFault(f"CPU core {job.core} does not exist here; choose another")


@contextmanager
def started(job: Job, place: Workplace) -> Iterator[Runner]:
    """Start the program pinned to its core, wait for packets, stop it afterwards; it is killed when we are killed."""
    check_possible(job)
    number = place.next_number()
    stats, log = place.folder / f"{number}.stats", place.folder / f"{number}.log"
    # A ring cannot absorb a time slice of a thread without packets, so such threads use other cores.
    cores = listed([job.core] if job.ring is None else usable())
    pinned = ["setpriv", "--pdeathsig", "KILL", "taskset", "--cpu-list", cores, *job.command]
    with log.open("wb") as output:
        process = subprocess.Popen(
            pinned,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | environment(job, stats),
            start_new_session=True,
        )
    runner = Runner(job, process, stats, log)
    try:
        runner.begin()
        runner.wait_for(STARTED_PACKETS, START_SECONDS)
        yield runner
    finally:
        runner.quit()
        if process.stdin:
            process.stdin.close()
