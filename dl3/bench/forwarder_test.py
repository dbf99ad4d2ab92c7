"""The configuration of dl3d in measurements on one core."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dl3.bench.forwarder import Settings, write_config
from dl3.bench.workplace import Workplace
from dl3.lab.tables import TableFiles


def written(settings: Settings, routes: str, folder: Path) -> dict[str, Any]:
    path = write_config(settings, TableFiles(routes, folder), Workplace(folder, folder / "onecore.so"))
    read: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize(("routes", "hop"), [("one", "10.1.0.0"), ("v6-1", "fd00::1:0")])
def gives_each_next_hop_a_neighbour(routes: str, hop: str, tmp_path: Path) -> None:
    file = written(Settings(n_hops=3), routes, tmp_path)
    assert len(file["neighbours"]) == 3
    assert file["neighbours"][0] == f"{hop} lladdr 02:01:00:00:00:00 dev out"
    assert Path(str(file["route_files"][0])).exists()


def rewrites_macs_only_when_asked(tmp_path: Path) -> None:
    plain = written(Settings(mode="xconnect"), "one", tmp_path)
    rewritten = written(Settings(mode="xconnect-mac"), "one", tmp_path)
    assert [port["to"] for port in plain["ports"]] == ["out", "in"]
    assert plain["ports"][0]["mac"] == "02:00:00:00:00:01"
    assert rewritten["ports"][0]["mac"] == "update"
    assert "route_files" not in plain
