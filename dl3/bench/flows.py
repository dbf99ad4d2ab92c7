"""Exact match: dl3d's flow table beside l3fwd's hash, with the same frames in the same random order; each hits a flow."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dl3.bench.forwarder import Settings, config, neighbours, write_file
from dl3.bench.sides import MAKER, Contestant, Entry, PairSettings, eal, job_of, march_of_build, march_of_peer
from dl3.bench.workplace import BUILD, DL3D, PEERS, TABLES, Workplace, built
from dl3.control.client import Client
from dl3.lab.command import run
from dl3.lab.tables import VERSION, TableFiles
from dl3.model.fault import Fault

MAKE_FLOWS = BUILD / "src" / "onecore" / "flows"
MAKE_SECONDS = 300.0
REPLY_SECONDS = 60.0
WHITE_PAPER_ENTRIES = 0x2000000
MIB = 1 << 20

ROW_OF_EXACT_MATCH = (
    "every frame is of a flow, in random order: random addresses and ports; dl3d: one of 256 next hops, packets and bytes "
    "of each flow counted; l3fwd exact match: one port, nothing counted"
)
ROW_OF_WHITE_PAPER = (
    f"{ROW_OF_EXACT_MATCH}; l3fwd's flows are those of the China Telecom white paper, and its table is as large as there: only "
    f"the destination varies, --hash-entry-num={WHITE_PAPER_ENTRIES:#x}"
)


@dataclass(frozen=True)
class FlowSet:
    """2^bits flows, as src/onecore/flows.h makes them."""

    kind: str
    bits: int

    @property
    def number(self) -> int:
        """How many flows there are."""
        return 1 << self.bits

    @property
    def entries(self) -> int:
        """Of l3fwd's hash table. A cuckoo table with random keys cannot be filled completely."""
        return WHITE_PAPER_ENTRIES if self.kind == "white-paper" else self.number * 5 // 4

    @property
    def l3fwd_mib(self) -> int:
        """EAL memory of l3fwd's tables: keys, buckets and the ring of free keys, as rte_hash_create takes them."""
        key_bytes, bucket_bytes, keys_of_bucket, index_bytes = 32, 64, 8, 4
        buckets = next_power(self.entries) // keys_of_bucket
        ring = next_power(self.entries + 1) * index_bytes
        return (self.entries * key_bytes + buckets * bucket_bytes + ring) // MIB

    @property
    def dl3d_mib(self) -> int:
        """Memory of dl3d's table with one worker: docs/internals/flow.md, and 5 MB for ended flows."""
        return int(self.number * 52.4) // MIB + 5

    @property
    def table_mib(self) -> int:
        """The plugin's table, in each program."""
        return self.number * 16 // MIB

    @property
    def disk_mib(self) -> int:
        """The files."""
        return self.number * (16 + 64) // MIB


FLOW_SETS: Mapping[str, FlowSet] = {
    "64k": FlowSet("random", 16),
    "1m": FlowSet("random", 20),
    "33m": FlowSet("random", 25),
    "33m-white-paper": FlowSet("white-paper", 25),
}


def next_power(number: int) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << (number - 1).bit_length()


class FlowsReply(BaseModel):
    """What dl3d replies to 'flows'; only what is used here."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    class Family(BaseModel):
        """Flows of one family."""

        model_config = ConfigDict(frozen=True, extra="ignore")
        flows: int

    ipv4: Family


class JobReply(BaseModel):
    """What dl3d replies to 'flows.job'; only what is used here."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    state: str
    reason: str | None = None


@dataclass(frozen=True)
class FlowFiles:
    """The files of a set of flows, in a folder; both are written when one is missing, and kept."""

    name: str
    n_hops: int
    folder: Path = TABLES

    @property
    def table(self) -> Path:
        """The plugin's input."""
        return self.folder / f"flows-{self.name}-{self.n_hops}.{VERSION}.table"

    @property
    def flows(self) -> Path:
        """What dl3d loads."""
        return self.table.with_suffix(".flows")

    @property
    def paths(self) -> tuple[Path, Path]:
        """Both."""
        return self.table, self.flows

    @property
    def are_there(self) -> bool:
        """Whether both were written."""
        return all(path.exists() for path in self.paths)

    def write(self) -> None:
        """Write those that are missing."""
        if self.are_there:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        flow_set, drafts = FLOW_SETS[self.name], [path.with_name(f"{path.name}.{os.getpid()}") for path in self.paths]
        words = (str(built(MAKE_FLOWS, "make")), flow_set.kind, str(flow_set.bits), str(self.n_hops), *map(str, drafts))
        try:
            run(words, MAKE_SECONDS)
            for draft, path in zip(drafts, self.paths, strict=True):
                draft.replace(path)
        finally:
            for draft in drafts:
                draft.unlink(missing_ok=True)


@dataclass(frozen=True)
class Loaded:
    """Whether dl3d has loaded all flows; called again until it has."""

    socket: Path
    wanted: int

    def __call__(self) -> bool:
        """True as soon as the table has that many; Fault if they cannot be loaded."""
        client = Client(self.socket, REPLY_SECONDS)
        try:
            job = client.ask(JobReply, "flows.job")
        except Fault:
            return False
        if job.state == "failed":
            raise Fault(f"dl3d cannot load the flows: {job.reason}")
        return client.ask(FlowsReply, "flows").ipv4.flows == self.wanted


def make_flow_dl3d(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """dl3d with a flow table; a frame without a flow would be dropped, and lower its rate."""
    files, flow_set = FlowFiles(entry.flows, entry.n_hops), FLOW_SETS[entry.flows]
    files.write()
    # Flows begin with the second next hop: the first has the address of the network itself.
    table = {"ipv4": flow_set.number, "missing": "drop", "file": str(files.flows)}
    settings = Settings(
        terms.core,
        terms.burst,
        entry.n_hops,
        terms.descriptors,
        entry.mode,
        terms.memory_mib,
        {"flow": table, "neighbours": neighbours(1 + entry.n_hops, 32)},
    )
    socket = place.folder / f"{place.next_number()}.sock"
    whole = config(settings, TableFiles(entry.routes, TABLES), place) | {"control": {"socket": str(socket)}}
    command = (str(built(DL3D, "make")), str(write_file(whole, place)))
    job = replace(job_of(entry, terms, command), table=files.table, begin=Loaded(socket, flow_set.number))
    return Contestant(job, march_of_build("."))


def memory_of_l3fwd(flow_set: FlowSet, terms: PairSettings) -> int:
    """MiB of EAL memory: the same as dl3d's, and what its table takes."""
    return terms.memory_mib + (flow_set.l3fwd_mib if flow_set.l3fwd_mib > terms.memory_mib // 2 else 0)


def make_l3fwd_em(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """l3fwd with exact match; it takes its flows from the plugin's table."""
    program, flow_set = built(PEERS / "l3fwd-em" / "program", f"{MAKER} --em"), FLOW_SETS[entry.flows]
    files = FlowFiles(entry.flows, entry.n_hops)
    files.write()
    memory = replace(terms, memory_mib=memory_of_l3fwd(flow_set, terms))
    command = (
        *(str(program), *eal(memory, place, f"0@{terms.core}")),
        *("-p", "0x3", "-P", "--no-numa", "--config=(0,0,0)", "--parse-ptype", "--lookup=em"),
        *(f"--rx-queue-size={terms.descriptors}", f"--tx-queue-size={terms.descriptors}"),
        f"--hash-entry-num={flow_set.entries:#x}",
    )
    return Contestant(replace(job_of(entry, terms, command), table=files.table), march_of_peer("l3fwd-em"))
