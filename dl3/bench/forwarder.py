"""The configuration of dl3d in measurements on one core."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from dl3.bench.onecore import FIRST_MAC
from dl3.bench.workplace import Workplace
from dl3.lab.tables import TableFiles, next_hop, next_hop_mac

LAST_MAC = "02:00:00:00:00:02"
ADDRESS_OF_OUT = {32: "10.1.255.254/16", 128: "fd00::ffff:ffff/64"}
PORT_OUT = "out"


@dataclass(frozen=True)
class Settings:
    """Settings that differ between rows."""

    core: int = 0
    burst: int = 64
    n_hops: int = 256
    descriptors: int = 2048
    mode: str = "route"  # route, xconnect, or xconnect-mac
    memory_mib: int = 0  # 0: chosen by dl3d
    more: Mapping[str, object] = field(default_factory=dict)  # keys of the file


def ports(settings: Settings, bits: int) -> list[dict[str, object]]:
    """Two net_null ports: one receives the plugin's frames, one takes the frames sent."""
    rings = {"rx_descriptors": settings.descriptors, "tx_descriptors": settings.descriptors}
    first: dict[str, object] = {"name": "in", "device": "net_null0", "mac": FIRST_MAC, **rings}
    last: dict[str, object] = {"name": PORT_OUT, "device": "net_null1,no-rx=1", "mac": LAST_MAC, **rings}
    if settings.mode == "route":
        return [first, last | {"addresses": [ADDRESS_OF_OUT[bits]]}]
    rewrite = {"mac": "update", "peer": LAST_MAC} if settings.mode == "xconnect-mac" else {}
    cross = {"mode": "xconnect", **rewrite}
    return [first | cross | {"to": PORT_OUT}, last | cross | {"to": "in"}]


def neighbours(n_hops: int, bits: int) -> list[str]:
    """One neighbour with a unique MAC address per next hop."""
    return [f"{next_hop(i, bits)} lladdr {next_hop_mac(i)} dev {PORT_OUT}" for i in range(n_hops)]


def base(settings: Settings, place: Workplace) -> dict[str, object]:
    """All but ports and what is behind them."""
    return {
        "workers": [{"core": settings.core}],
        "burst": settings.burst,
        "memory": {"hugepages": "require", "mib": settings.memory_mib},
        "eal": {"plugins": [str(place.plugin)]},
        "control": {"socket": str(place.folder / f"{place.next_number()}.sock")},
    }


def config(settings: Settings, files: TableFiles, place: Workplace) -> dict[str, object]:
    """The whole configuration."""
    made = {"ports": ports(settings, files.bits), **base(settings, place)}
    if settings.mode == "route":
        made["route_files"] = [str(files.dl3d_routes(settings.n_hops, PORT_OUT))]
        made["neighbours"] = neighbours(settings.n_hops, files.bits)
    return made | dict(settings.more)


def write_config(settings: Settings, files: TableFiles, place: Workplace) -> Path:
    """Write it into the workplace."""
    return write_file(config(settings, files, place), place)


def write_file(whole: Mapping[str, object], place: Workplace) -> Path:
    """Write a configuration into the workplace."""
    path = place.folder / f"{place.next_number()}.yaml"
    path.write_text(yaml.safe_dump(dict(whole), sort_keys=False), encoding="utf-8")
    return path
