"""The programs that are compared, each started in its own way on the same core, memory, burst and descriptors."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from dl3.bench.forwarder import Settings, write_config
from dl3.bench.onecore import Job
from dl3.bench.tables import TableFiles
from dl3.bench.workplace import BUILD, PEERS, TABLES, Workplace, built
from dl3.model.fault import Fault
from dl3.record.facts import last_march, output_of, text_of

MAKER = "tools/build-peers"


@dataclass(frozen=True)
class Terms:
    """What both programs of a pair have in common."""

    core: int = 0
    burst: int = 64
    descriptors: int = 2048
    memory_mib: int = 1024


@dataclass(frozen=True)
class Entry:
    """One side of a row."""

    program: str  # a key of MAKERS
    routes: str = "one"
    n_hops: int = 256
    mode: str = "route"
    is_half_load: bool = False


@dataclass(frozen=True)
class Contestant:
    """A side that can be started, and what it was compiled for."""

    job: Job
    march: str


def march_of_build(folder: str) -> str:
    """The -march of dl3d's packet path in a build of ours."""
    commands = text_of(BUILD / folder / "compile_commands.json")
    found = re.search(r'"command": "([^"]*path/worker\.c[^"]*)"', commands)
    if not found:
        raise Fault(f"{BUILD / folder} does not say how dl3d was compiled: run 'make' and {MAKER}")
    return last_march(found[1])


def march_of_peer(name: str) -> str:
    """The -march of a peer built by tools/build-peers."""
    note = built(PEERS / f"{name}.json", MAKER)
    return str(json.loads(note.read_text(encoding="utf-8"))["march"])


def job_of(entry: Entry, terms: Terms, command: tuple[str, ...]) -> Job:
    """The common part of all jobs."""
    return Job(
        name=entry.program,
        command=command,
        table=TableFiles(entry.routes, TABLES).destinations(),
        core=terms.core,
        max_burst=terms.burst // 2 if entry.is_half_load else None,
    )


def make_dl3d(folder: str, entry: Entry, terms: Terms, place: Workplace) -> Contestant:
    """dl3d of one of our builds, on a file made for it."""
    program = built(BUILD / folder / "src" / "dl3d", "make")
    settings = Settings(terms.core, terms.burst, entry.n_hops, terms.descriptors, entry.mode, terms.memory_mib)
    config = write_config(settings, TableFiles(entry.routes, TABLES), place)
    return Contestant(job_of(entry, terms, (str(program), str(config))), march_of_build(folder))


def eal(terms: Terms, place: Workplace, lcores: str) -> tuple[str, ...]:
    """EAL's arguments of the peers."""
    return (
        *("--no-pci", "--no-telemetry", "--in-memory", "-m", str(terms.memory_mib), "-d", str(place.plugin)),
        *("--vdev", "net_null0", "--vdev", "net_null1,no-rx=1", "--lcores", lcores),
        *("--file-prefix", f"dl3-peer{place.next_number()}", "--"),
    )


def make_l3fwd(entry: Entry, terms: Terms, place: Workplace) -> Contestant:
    """l3fwd with LPM. Its main lcore forwards: it would wait busily on the same core otherwise."""
    program = built(PEERS / "l3fwd" / "program", MAKER)
    is_ip6 = entry.routes.startswith("v6")
    rules4 = TableFiles("one" if is_ip6 else entry.routes, TABLES).l3fwd_rules()
    rules6 = TableFiles(entry.routes if is_ip6 else "v6-1", TABLES).l3fwd_rules()
    command = (
        *(str(program), *eal(terms, place, f"0@{terms.core}")),
        *("-p", "0x3", "-P", "--no-numa", "--config=(0,0,0)", "--parse-ptype", "--lookup=lpm"),
        *(f"--rx-queue-size={terms.descriptors}", f"--tx-queue-size={terms.descriptors}"),
        *(f"--rule_ipv4={rules4}", f"--rule_ipv6={rules6}"),
    )
    return Contestant(job_of(entry, terms, command), march_of_peer("l3fwd"))


def make_graph(entry: Entry, terms: Terms, place: Workplace) -> Contestant:
    """l3fwd-graph: rte_graph's own nodes, one route, bursts as its library has them."""
    program = built(PEERS / "l3fwd-graph" / "program", MAKER)
    command = (
        *(str(program), *eal(terms, place, f"0@{terms.core},1@{terms.core}")),
        *("-p", "0x3", "-P", "--no-numa", "--config=(0,0,1)"),
    )
    return Contestant(job_of(entry, terms, command), march_of_peer("l3fwd-graph"))


def make_testpmd(mode: str, entry: Entry, terms: Terms, place: Workplace) -> Contestant:
    """The distribution's testpmd; its main thread sleeps."""
    command = (
        *("dpdk-testpmd", *eal(terms, place, f"0@{terms.core},1@{terms.core}")),
        *("--nb-cores=1", f"--forward-mode={mode}", f"--burst={terms.burst}", "--no-lsc-interrupt", "--auto-start"),
        *(f"--rxd={terms.descriptors}", f"--txd={terms.descriptors}"),
    )
    return Contestant(job_of(entry, terms, command), last_march(output_of("pkg-config", "--cflags", "libdpdk")))


Maker = Callable[[Entry, Terms, Workplace], Contestant]

MAKERS: dict[str, Maker] = {
    "dl3d": lambda *side: make_dl3d(".", *side),
    "dl3d as built for testpmd": lambda *side: make_dl3d("peers/portable", *side),
    "l3fwd": make_l3fwd,
    "l3fwd-graph": make_graph,
    "testpmd io": lambda *side: make_testpmd("io", *side),
    "testpmd macswap": lambda *side: make_testpmd("macswap", *side),
}


def contestant(entry: Entry, terms: Terms, place: Workplace) -> Contestant:
    """The side, ready to start."""
    return MAKERS[entry.program](entry, terms, place)
