"""What Prometheus gets from programs that answer, that are gone, and that answer nonsense."""

import json
import math
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from dl3.control.client import DL3D, DL3GEN, Program
from dl3.metrics.fake import Fake, of_dl3d, of_dl3gen, port, running, worker
from dl3.metrics.families import Replies
from dl3.metrics.target import LOOKS, READERS, Target, Targets
from dl3.metrics.words import metrics, names, rows

Read = dict[tuple[str, tuple[tuple[str, str], ...]], float]
LONG_S = 30.0


@pytest.fixture
def dl3d(tmp_path: Path) -> Iterator[tuple[Path, Fake]]:
    path = tmp_path / "dl3d.sock"
    with running(path, Fake(of_dl3d())) as fake:
        yield path, fake


def _read(targets: Targets) -> Read:
    """Each sample by name and labels, without the label of the socket; twice the same one is a mistake."""
    found: Read = {}
    for family in text_string_to_metric_families(generate_latest(targets).decode()):
        for sample in family.samples:
            labels = tuple(sorted((k, v) for k, v in sample.labels.items() if k != "socket"))
            assert (sample.name, labels) not in found
            found[sample.name, labels] = sample.value
    return found


def _target(path: Path, program: Program = DL3D, timeout_s: float = LONG_S) -> Targets:
    return Targets([Target(program, path, timeout_s)])


def reads_counters_by_the_names_of_the_schema(dl3d: tuple[Path, Fake]) -> None:
    path, fake = dl3d
    read = _read(_target(path))
    assert read["dl3d_up", ()] == 1
    ports = {row["name"]: row for row in fake.replies["ports"]["ports"]}
    for row in rows("counters", "counter"):
        if row["scope"] == "port":
            assert read[f"dl3d_port_{row['name']}_total", (("port", "right"),)] == ports["right"][row["name"]]
    assert read["dl3d_worker_slept_seconds_total", (("worker", "1"),)] == 5.0
    assert read["dl3d_queue_rx_packets_total", (("port", "left"), ("queue", "1"), ("worker", "1"))] == 71
    assert read["dl3d_start_time_seconds", ()] == 1_700_000_000.125
    assert read["dl3d_flows_ended_total", (("reason", "end"),)] == 6


def has_a_series_for_each_drop_reason(dl3d: tuple[Path, Fake]) -> None:
    read = _read(_target(dl3d[0]))
    verdicts = [row["name"] for row in rows("verdicts", "verdict")]
    found = {
        dict(labels)["verdict"]: value for (name, labels), value in read.items() if name == "dl3d_dropped_packets_total"
    }
    assert found == {name: 10 + i for i, name in enumerate(verdicts) if name != "forward"}
    for i, name in enumerate(names("class")):
        assert read["dl3d_worker_ring_full_packets_total", (("class", name), ("worker", "0"))] == i


def gives_no_series_for_what_a_device_does_not_count(dl3d: tuple[Path, Fake]) -> None:
    read = _read(_target(dl3d[0]))
    assert read["dl3d_port_rx_missed_packets_total", (("port", "left"),)] == 4
    names = {name for name, _ in read}
    assert "dl3d_port_rx_error_packets_total" not in names
    assert "dl3d_port_speed_bytes" not in names


def the_histogram_of_long_gaps_adds_up(dl3d: tuple[Path, Fake]) -> None:
    read = _read(_target(dl3d[0]))
    name, worker = "dl3d_worker_long_gap_seconds", ("worker", "0")
    edges = {
        float(dict(labels)["le"]): value
        for (n, labels), value in read.items()
        if n == f"{name}_bucket" and worker in labels
    }
    assert [edges[edge] for edge in sorted(edges)] == list(range(1, 17))
    assert sorted(edges)[:3] == [4e-5, 8e-5, 1.6e-4]
    assert sorted(edges)[-1] == math.inf
    assert read[f"{name}_count", (worker,)] == 16
    assert read[f"{name}_sum", (worker,)] == 3.0


def the_histogram_of_latencies_never_counts_a_frame_as_faster_than_it_was(tmp_path: Path) -> None:
    path = tmp_path / "dl3gen.sock"
    with running(path, Fake(of_dl3gen())):
        read = _read(_target(path, DL3GEN))
    edges = {
        float(dict(labels)["le"]): value
        for (name, labels), value in read.items()
        if name == "dl3gen_stream_latency_seconds_bucket"
    }
    assert (edges[1e-6], edges[2e-6], edges[5e-6], edges[1.0], edges[math.inf]) == (4, 4, 9, 9, 10)
    assert read["dl3gen_stream_latency_seconds_sum", (("stream", "east"),)] == pytest.approx(25e-6)
    assert read["dl3gen_sending", ()] == 1
    assert read["dl3gen_stream_lost_packets", (("stream", "east"),)] == 2


def the_number_of_series_does_not_depend_on_the_tables(dl3d: tuple[Path, Fake]) -> None:
    path, fake = dl3d
    before = set(_read(_target(path)))
    fake.replies["status"] |= {"routes": {"ip4": 10**6, "ip6": 10**6}, "nexthops": 10**5, "neighbours": 10**5}
    fake.replies["flows"]["ipv4"]["flows"] = 10**8
    assert set(_read(_target(path))) == before


def the_number_of_series_is_linear_in_ports_workers_and_queues(dl3d: tuple[Path, Fake]) -> None:
    path, fake = dl3d

    def count(n_ports: int, n_workers: int, n_queues: int) -> int:
        fake.replies["ports"]["ports"] = [port(f"p{i}") for i in range(n_ports)]
        queues = [{"port": f"p{i}", "queue": 0, "rx_packets": 0} for i in range(n_queues)]
        fake.replies["workers"]["workers"] = [worker(i) | {"queues": queues} for i in range(n_workers)]
        return len(_read(_target(path)))

    none = count(0, 0, 0)
    of_port, of_worker = count(1, 0, 0) - none, count(0, 1, 0) - none
    assert count(3, 4, 5) == none + 3 * of_port + 4 * of_worker + 4 * 5


def asks_again_until_nothing_is_in_flight(dl3d: tuple[Path, Fake]) -> None:
    path, fake = dl3d
    fake.replies["drops"]["in_flight"] = 32
    assert _read(_target(path))["dl3d_account_imbalance_packets", ()] == 0
    fake.replies["status"]["account"]["in_flight"] = 5
    fake.asked.clear()
    assert _read(_target(path))["dl3d_account_imbalance_packets", ()] == 5
    assert fake.asked.count("status") == LOOKS


def asks_only_for_what_dl3d_has(dl3d: tuple[Path, Fake]) -> None:
    path, fake = dl3d
    fake.replies["status"] |= {"control": "static", "mirror": None}
    del fake.replies["status"]["table"]["flow_bytes"]
    names = {name for name, _ in _read(_target(path))}
    assert not {"taps", "flows"} & set(fake.asked)
    assert not {"dl3d_mirror_following", "dl3d_flows", "dl3d_class_punted_packets_total"} & names
    assert "dl3d_routes" in names


def says_once_that_a_program_is_gone_and_once_that_it_is_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "dl3d.sock"
    targets = _target(path)
    assert _read(targets) == {("dl3d_up", ()): 0}
    assert _read(targets) == {("dl3d_up", ()): 0}
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line
    assert "dl3d_up is 0" in line
    with running(path, Fake(of_dl3d())):
        assert _read(targets)["dl3d_up", ()] == 1
        assert _read(targets)["dl3d_up", ()] == 1
    assert capsys.readouterr().err == f"dl3 metrics: dl3d at {path} replies again\n"


def one_that_is_gone_takes_nothing_from_the_others(dl3d: tuple[Path, Fake], tmp_path: Path) -> None:
    path, _ = dl3d
    with running(tmp_path / "gen.sock", Fake(of_dl3gen())):
        listed = [(DL3D, path), (DL3D, tmp_path / "none"), (DL3GEN, tmp_path / "gen.sock")]
        text = generate_latest(Targets([Target(program, at, LONG_S) for program, at in listed])).decode()
    assert f'dl3d_up{{socket="{path}"}} 1.0' in text
    assert f'dl3d_up{{socket="{tmp_path}/none"}} 0.0' in text
    assert f'dl3gen_stream_sent_packets_total{{socket="{tmp_path}/gen.sock",stream="east"}} 12.0' in text


def what_nobody_thought_of_is_trouble_of_one_program_alone(
    dl3d: tuple[Path, Fake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_ask: object) -> Replies:
        raise RecursionError("too deep")

    monkeypatch.setattr("dl3.metrics.target.READERS", {**READERS, DL3GEN.name: fail})
    listed = [(DL3D, dl3d[0]), (DL3GEN, tmp_path / "gen.sock")]
    text = generate_latest(Targets([Target(program, at, LONG_S) for program, at in listed])).decode()
    assert f'dl3d_up{{socket="{dl3d[0]}"}} 1.0' in text
    assert f'dl3gen_up{{socket="{tmp_path}/gen.sock"}} 0.0' in text
    (line,) = capsys.readouterr().err.splitlines()
    assert "RecursionError" in line


def a_program_that_never_answers_is_down_after_the_time_limit(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        assert _read(_target(tmp_path / "s", timeout_s=0.1)) == {("dl3d_up", ()): 0}


def a_program_that_answers_without_end_is_down_after_the_time_limit(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()

        def drip() -> None:
            peer, _ = listener.accept()
            with peer:
                try:
                    while True:
                        peer.sendall(b" ")
                except OSError:
                    return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        assert _read(_target(tmp_path / "s", timeout_s=0.2)) == {("dl3d_up", ()): 0}
        thread.join()


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("ports", {"ports": "left"}),
        ("ports", {"ports": [7]}),
        ("ports", {}),
        ("drops", {"in_flight": None}),
        ("drops", {"verdicts": [{"name": "no_route", "packets": "many", "handed": 0}]}),
        ("workers", {"workers": [{"worker": 0, "counters": {"loops": [1]}, "queues": []}]}),
        ("workers", {"workers": [{"worker": 0, "counter_lists": {"ring_full": [1]}, "queues": []}]}),
        ("status", {"started_ms": 10**400}),
        ("workers", {"tsc_hz": 0}),
        ("workers", {"tsc_hz": -1}),
        ("workers", {"tsc_hz": math.nan}),
        ("workers", {"tsc_hz": 1e-320}),
        ("workers", {"tsc_hz": 10**400}),
        ("workers", {"tsc_hz": "fast"}),
    ],
)
def a_reply_that_is_not_as_expected_is_one_sentence(
    dl3d: tuple[Path, Fake], capsys: pytest.CaptureFixture[str], method: str, change: dict[str, Any]
) -> None:
    path, fake = dl3d
    fake.replies[method] = {**fake.replies[method], **change} if change else {}
    assert _read(_target(path)) == {("dl3d_up", ()): 0}
    (line,) = capsys.readouterr().err.splitlines()
    assert "same version" in line
    assert len(line) < 300


@pytest.mark.parametrize("line", [b"", b"garbage\n", b"[]\n", b'{"jsonrpc": "2.0", "result": []}\n', b"\xff\x00\n"])
def garbage_is_one_sentence(dl3d: tuple[Path, Fake], capsys: pytest.CaptureFixture[str], line: bytes) -> None:
    path, fake = dl3d
    fake.raw["workers"] = line
    assert _read(_target(path)) == {("dl3d_up", ()): 0}
    assert len(capsys.readouterr().err.splitlines()) == 1


def every_metric_has_samples_from_the_fakes(dl3d: tuple[Path, Fake], tmp_path: Path) -> None:
    path, fake = dl3d
    for one in fake.replies["ports"]["ports"]:
        one |= {"rx_no_mbuf": 0, "rx_errors": 0, "tx_errors": 0, "speed_mbps": 10_000}
    with running(tmp_path / "gen.sock", Fake(json.loads(json.dumps(of_dl3gen())))):
        text = generate_latest(
            Targets([Target(DL3D, path, LONG_S), Target(DL3GEN, tmp_path / "gen.sock", LONG_S)])
        ).decode()
    shown = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    assert shown == {metric.series for metric in metrics()}
    assert 'dl3d_port_speed_bytes{port="left",' in text
