"""The two-core lab: dl3gen and dl3d over memif, and its shutdown, during which neither may crash."""

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from harness.answers import DL3GEN, at_rest
from harness.wire import wait_until
from harness.wired import BUILD, DL3D

from dl3.control.client import Client
from dl3.control.generator import Results, Started
from dl3.control.replies import Drops
from dl3.dut.dl3d import Dl3d
from dl3.host.hugepages import NUMBER, read_number, reserved
from dl3.lab.links import Flows, Links, streams
from dl3.lab.memif import MemifLab, MemifSettings, memif_lab
from dl3.lab.pair import generator_socket, links_are_up, start_generator
from dl3.lab.process import Process
from dl3.lab.single import START_SECONDS, is_ready, start_process
from dl3.model.fault import Fault

pytestmark = pytest.mark.alone  # huge pages, and a core for each program

TERMS = MemifSettings(Dl3d(DL3D), ring_bits=12, flows=Flows(number=100, is_both_ways=True), build=BUILD)


def _run(lab: MemifLab, rate: str, seconds: float) -> Results:
    assert lab.dut
    dut, before = lab.dut, lab.dut.ask(Drops, "drops").received
    lab.generator.ask(Started, "send", streams=streams(TERMS.flows, rate), seconds=seconds)

    def results() -> Results:
        return lab.generator.ask(Results, "results")

    def has_come() -> bool:
        found, account = results(), dut.ask(Drops, "drops")
        sent = sum(stream.sent - stream.refused for stream in found.streams)
        return found.state == "done" and account.received - before == sent and account.in_flight == 0

    wait_until(has_come, "dl3d had forwarded all that was sent")
    return at_rest(results)


def _is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def accounts_for_each_frame_in_both_directions() -> None:
    pages = read_number(NUMBER)
    with memif_lab(TERMS) as lab:
        results = _run(lab, "50 kpps", 0.5)
        assert lab.dut
        account = lab.dut.ask(Drops, "drops")
        folder = lab.endpoint.links.folder
    assert len(results.streams) == 2
    for stream in results.streams:
        assert stream.received > 0
        assert stream.sent == stream.received + stream.lost
        assert (stream.corrupted, stream.duplicated, stream.reordered) == (0, 0, 0)
    assert account.received == sum(stream.sent - stream.refused for stream in results.streams)
    assert account.sent == sum(stream.received for stream in results.streams)
    assert not folder.exists()
    assert read_number(NUMBER) <= pages
    assert all(_is_gone(process.process.pid) for process in (lab.generator_process, lab.dut_process))
    assert len(lab.round_trips_ns) == 2


@pytest.mark.parametrize("is_zero_copy", [True, False])
def ends_in_order_while_frames_flow(is_zero_copy: bool, is_long: bool) -> None:
    terms = MemifSettings(Dl3d(DL3D), ring_bits=10, is_zero_copy=is_zero_copy, build=BUILD)
    for _ in range(20 if is_long else 2):
        with memif_lab(terms) as lab:
            lab.generator.ask(Started, "send", streams=streams(terms.flows, "max"), seconds=60)
            time.sleep(0.05)
            lab.check_alive()
        assert lab.dut_process.process.returncode == 0, lab.dut_process.log


def goes_on_after_it_stood_still() -> None:
    with memif_lab(TERMS) as lab:
        lab.freeze()
        time.sleep(0.1)
        lab.thaw()
        assert lab.look() > 0
        assert all(stream.received > 0 for stream in _run(lab, "10 kpps", 0.2).streams)


def _lose_the_forwarder(labs: list[MemifLab]) -> None:
    with memif_lab(TERMS) as lab:
        labs.append(lab)
        lab.generator_process.freeze()
        lab.dut_process.kill()
        lab.check_alive()


def reports_that_the_forwarder_is_gone_and_clears_up() -> None:
    labs: list[MemifLab] = []
    with pytest.raises(Fault, match="dl3d exited with status -9"):
        _lose_the_forwarder(labs)
    assert _is_gone(labs[0].generator_process.process.pid)
    assert not labs[0].endpoint.links.folder.exists()


def _start_server(folder: Path, name: str, device: str, ends: ExitStack) -> Process:
    """A program with the other end of one link, up to its reply."""
    file, socket = folder / f"{name}.yaml", folder / f"{name}.sock"
    whole = {
        "ports": [{"name": name, "device": device}],
        "workers": [{"core": TERMS.dut_cores[0]}],
        "memory": {"hugepages": "never"},
        "control": {"socket": str(socket)},
    }
    file.write_text(yaml.safe_dump(whole))
    process = start_process(name, (str(DL3GEN), str(file)), folder)
    ends.callback(process.kill)
    process.wait_until(lambda: is_ready(Client(socket)), "ready", START_SECONDS)
    return process


@pytest.mark.parametrize(("late", "seconds"), [(0, 1.5), (1, 1.5), pytest.param(1, 4, marks=pytest.mark.long)])
def a_peer_that_answers_late_gets_a_link(tmp_path: Path, late: int, seconds: float) -> None:
    """DPDK's driver closes the file behind one peer's buffers, and the next peer gets the same."""
    links = Links(tmp_path, ring_bits=10, is_zero_copy=True)
    endpoint = TERMS.endpoint(tmp_path)
    with ExitStack() as ends:
        ends.enter_context(reserved(TERMS.pages))
        devices = links.devices("server")
        servers = [_start_server(tmp_path, f"s{i}", device, ends) for i, device in enumerate(devices)]
        servers[late].freeze()
        generator = start_generator(TERMS.tester, replace(endpoint, links=links))
        ends.callback(generator.kill)
        client = Client(generator_socket(endpoint))
        time.sleep(seconds)
        servers[late].thaw()
        generator.wait_until(lambda: links_are_up(client), "had both links up", START_SECONDS)
