"""dl3d with TAP interfaces: the same routing table, but configured in Linux and mirrored from there; no changes while
it is measured.
"""

import os
from dataclasses import replace
from pathlib import Path

import yaml

from dl3.bench.forwarder import ADDRESS_OF_OUT, PORT_OUT, Settings, config, ports
from dl3.bench.sides import ZERO_LOSS_RING, Contestant, Entry, PairSettings, job_of, march_of_build
from dl3.bench.workplace import DL3D, TABLES, Workplace, built
from dl3.control.client import Client
from dl3.control.linux import Verification
from dl3.control.replies import Reply
from dl3.lab.command import run
from dl3.lab.tables import TableFiles, next_hop, next_hop_mac
from dl3.model.fault import Fault

BATCH_SECONDS = 120.0
REPLY_SECONDS = 60.0
STATIC_KEYS = ("ports", "route_files", "neighbours", "addresses")
ROW_OF_MIRROR = (
    "both dl3d, restarted for every five pairs, which take a quarter of the time: one with TAP interfaces, its table "
    "mirrored from Linux and idle, the other with the same table from a file"
)
ROW_OF_ZERO_LOSS = (
    "the same with one route, where frames arrive at a rate in a ring of "
    f"{ZERO_LOSS_RING:,} descriptors; Mpps at which half of the trials, of 20 ms each, lose nothing"
)


def commands(files: TableFiles, n_hops: int) -> str:
    """Lines for `ip -batch` with the contents of the other side's configuration."""
    hops = (f"neighbour add {next_hop(i, files.bits)} lladdr {next_hop_mac(i)} dev {PORT_OUT}" for i in range(n_hops))
    routes = files.dl3d_routes(n_hops, PORT_OUT).read_text(encoding="ascii").splitlines()
    lines = [
        f"address add {ADDRESS_OF_OUT[files.bits]} dev {PORT_OUT}",
        *hops,
        *(f"route add {line}" for line in routes),
    ]
    return "\n".join(lines) + "\n"


def write_tapped_config(settings: Settings, files: TableFiles, place: Workplace) -> tuple[Path, Path]:
    """dl3d's configuration and its socket. Its private namespace is named after the socket, which must therefore be
    unique.
    """
    whole = {key: value for key, value in config(settings, files, place).items() if key not in STATIC_KEYS}
    socket = place.folder / f"dl3-bench-{os.getpid()}-{place.next_number()}.sock"
    whole["ports"] = [
        {key: value for key, value in port.items() if key not in STATIC_KEYS} for port in ports(settings, files.bits)
    ]
    whole |= {"linux": {"keep": False}, "control": {"socket": str(socket)}}
    path = place.folder / f"{place.next_number()}.yaml"
    path.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    return path, socket


class Told:
    """Adds the routes to Linux once, as soon as dl3d replies; then checks whether the workers have them."""

    def __init__(self, socket: Path, text: str) -> None:
        self._client, self._namespace, self._text = Client(socket, REPLY_SECONDS), socket.stem, text
        self._is_reported = False

    def __call__(self) -> bool:
        """Whether all routes are installed."""
        try:
            self._client.ask(Reply, "status")
        except Fault:
            return False
        if not self._is_reported:
            self._tell()
        return not self._client.ask(Verification, "verify", sample=1000).differences

    def _tell(self) -> None:
        batch = self._client.path.with_suffix(".batch")
        batch.write_text(self._text, encoding="ascii")
        run(["ip", "-n", self._namespace, "-batch", str(batch)], BATCH_SECONDS)
        batch.unlink()
        self._is_reported = True


def make_tapped_dl3d(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """dl3d with Linux as its control plane."""
    settings = Settings(terms.core, terms.burst, entry.n_hops, terms.descriptors, entry.mode, terms.memory_mib)
    files = TableFiles(entry.routes, TABLES)
    path, socket = write_tapped_config(settings, files, place)
    job = job_of(entry, terms, (str(built(DL3D, "make")), str(path)))
    reported = Told(socket, commands(files, entry.n_hops))
    return Contestant(replace(job, begin=reported), march_of_build("."))
