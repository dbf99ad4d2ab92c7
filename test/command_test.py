"""The command dl3 against a running dl3d."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.wired import DL3D, TOP, Port, config_text

from dl3.lab.forwarder import Forwarder

DL3 = TOP / "bin" / "dl3"


@pytest.fixture(scope="module")
def dl3d() -> Iterator[Forwarder]:
    ports = [Port("a", device="net_ring0"), Port("b", device="net_ring1", keys={"addresses": ["10.0.2.1/24"]})]
    routes = [f"10.2.{i}.0/24 via 10.0.2.2 dev b" for i in range(250)]
    neighbours = ["10.0.2.2 lladdr 02:00:00:00:01:02 dev b"]
    with Forwarder(DL3D, config_text(ports, routes=routes, neighbours=neighbours)) as made:
        made.wait_ready()
        yield made


def _run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([DL3, *arguments], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("what", ["ports", "workers", "drops", "routes", "nexthops"])
def show_has_output_for_people_and_programs(dl3d: Forwarder, what: str) -> None:
    table = _run("show", what, "--socket", dl3d.socket)
    assert (table.returncode, table.stderr) == (0, "")
    assert len(table.stdout.splitlines()) >= 2
    machine = _run("show", what, "--json", "--socket", dl3d.socket)
    assert (machine.returncode, machine.stderr) == (0, "")
    assert json.loads(machine.stdout)


@pytest.mark.parametrize("words", [("show", "taps"), ("show", "mirror"), ("show", "unsupported"), ("verify",)])
def what_is_linuxs_is_refused_where_routes_come_from_a_file(dl3d: Forwarder, words: tuple[str, ...]) -> None:
    run = _run(*words, "--socket", dl3d.socket)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == 'dl3: Linux is not the control plane: the configuration file has no key "linux"\n'


def route_explains_an_address(dl3d: Forwarder) -> None:
    run = _run("route", "10.2.7.9", "--socket", dl3d.socket)
    assert (run.returncode, run.stderr) == (0, "")
    for word in ("10.2.7.0/24", "10.0.2.2", "b", "02:00:00:00:01:02"):
        assert word in run.stdout


def reload_reports_a_mistake_in_one_sentence(dl3d: Forwarder) -> None:
    good = dl3d.file.read_text()
    assert _run("reload", "--socket", dl3d.socket).returncode == 0
    try:
        dl3d.file.write_text(good.replace("10.2.0.0/24", "10.2.0.1/24"))
        run = _run("reload", "--socket", dl3d.socket)
    finally:
        dl3d.file.write_text(good)
    assert run.returncode != 0
    assert "host bits" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    reported = [line for line in dl3d.stderr.splitlines() if "reload: " in line]
    assert "reload: done; IPv4 routes " in reported[-2]
    assert "reload: " in reported[-1]
    assert "host bits" in reported[-1]


def a_socket_where_nobody_is_gets_one_sentence(tmp_path: Path) -> None:
    run = _run("show", "drops", "--socket", tmp_path / "none.sock")
    assert run.returncode != 0
    assert run.stdout == ""
    assert "none.sock" in run.stderr
    assert "Traceback" not in run.stderr
