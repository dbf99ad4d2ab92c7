"""The http server, the dashboard and the rules."""

import http.client
import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from prometheus_client.exposition import generate_latest

from dl3.control.client import DL3D, DL3GEN
from dl3.metrics.dashboard import dashboard
from dl3.metrics.fake import Fake, of_dl3d, of_dl3gen, running
from dl3.metrics.rules import rules
from dl3.metrics.server import CONNECTIONS, Server, opened, parsed
from dl3.metrics.target import Target, Targets
from dl3.metrics.words import alerts, metrics
from dl3.model.fault import Fault, UsageFault

PROMTOOL = shutil.which("promtool") or "promtool"

SUFFIXES = ("", "_bucket", "_sum", "_count")


@pytest.fixture
def targets(tmp_path: Path) -> Iterator[Targets]:
    with running(tmp_path / "d", Fake(of_dl3d())), running(tmp_path / "g", Fake(of_dl3gen())):
        yield Targets([Target(DL3D, tmp_path / "d", 30.0), Target(DL3GEN, tmp_path / "g", 30.0)])


@pytest.fixture
def server(targets: Targets) -> Iterator[Server]:
    made = opened("127.0.0.1:0", targets)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def _get(server: Server, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request(method, path)
    response = connection.getresponse()
    return response.status, response.read().decode()


def serves_the_metrics_at_their_path_alone(server: Server) -> None:
    status, text = _get(server, "/metrics")
    assert status == 200
    assert "# TYPE dl3d_received_packets_total counter" in text
    assert _get(server, "/other")[0] == 404


def many_silent_clients_leave_the_server_alive(server: Server) -> None:
    silent = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(3 * CONNECTIONS)]
    turned_away = [client for client in silent[CONNECTIONS:] if client.recv(1) == b""]
    assert len(turned_away) == 2 * CONNECTIONS
    for client in silent:
        client.close()
    while not server.room.acquire(timeout=30):
        pass
    server.room.release()
    assert _get(server, "/metrics")[0] == 200


def a_client_that_sends_garbage_harms_nobody(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    for garbage in (b"\x00\xff\n\n", b"GET /metrics\n\n", b"GET " + b"/" * 100_000 + b"\n\n"):
        # The server may have closed it, with some of this unread.
        with socket.create_connection(("127.0.0.1", server.server_port)) as client, suppress(OSError):
            client.sendall(garbage)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
    assert _get(server, "/metrics")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


def an_address_in_use_is_one_sentence(server: Server) -> None:
    with pytest.raises(Fault, match=r"cannot listen at 127\.0\.0\.1:"):
        opened(f"127.0.0.1:{server.server_port}", Targets([]))


@pytest.mark.parametrize(
    "text", ["", "9883", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "a/b:1", "host.name:1", "::1:²"]
)
def refuses_an_address_that_is_none(text: str) -> None:
    with pytest.raises(UsageFault, match="--listen"):
        opened(text, Targets([]))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("127.0.0.1:9883", ("127.0.0.1", 9883)), ("[::1]:1", ("::1", 1)), (":9883", ("", 9883))],
)
def reads_addresses(text: str, wanted: tuple[str, int]) -> None:
    assert parsed(text) == wanted


def _promtool(*words: str, given: str = "") -> None:
    """It has nothing to say."""
    run = subprocess.run([PROMTOOL, *words], input=given, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")


def promtool_has_nothing_against_the_metrics(targets: Targets) -> None:
    _promtool("check", "metrics", given=generate_latest(targets).decode())


def promtool_has_nothing_against_the_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(rules(), encoding="utf-8")
    _promtool("check", "rules", "--lint-fatal", str(file))


def _promtool_on_alerts(folder: Path, at: str) -> tuple[int, str]:
    """Samples of two hours: all is well in the first one, and in the second all that can be wrong is. Expects no alert."""
    labels = '{instance="a", job="dl3", socket="s", port="p", worker="0", verdict="no_route"}'
    wrong = {
        "dl3d_up": "1x60 0x60",
        "up": "1x60 0x60",
        "dl3d_start_time_seconds": "5x60 9x60",
        "dl3d_account_imbalance_packets": "256x60 257x60",  # one worker may hold the former
        "dl3d_worker_info": "1x120",
        "dl3d_worker_loops_total": "0+100x60 6000x60",
        "dl3d_received_packets_total": "0+6000x60 360000+6000x60",
        "dl3d_dropped_packets_total": "0+6x60 360+600x60",
        "dl3d_port_link_up": "1x60 0x60",
        "dl3d_port_rx_missed_packets_total": "0x60 0+1x60",
    }
    (folder / "rules.yml").write_text(rules(), encoding="utf-8")
    series = [{"series": name + labels, "values": values} for name, values in wrong.items()]
    expected = [{"eval_time": at, "alertname": alert.name, "exp_alerts": []} for alert in alerts()]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": expected}
    file = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "test.yml").write_text(yaml.safe_dump(file), encoding="utf-8")
    run = subprocess.run([PROMTOOL, "test", "rules", folder / "test.yml"], capture_output=True, text=True, timeout=120)
    return run.returncode, run.stdout + run.stderr


def each_alert_fires_for_what_it_is_about_and_only_then(tmp_path: Path) -> None:
    code, said = _promtool_on_alerts(tmp_path, "55m")
    assert code == 0, said
    for at, names in (("1h8m", {"Dl3dRestarted"}), ("1h50m", {alert.name for alert in alerts()} - {"Dl3dRestarted"})):
        code, said = _promtool_on_alerts(tmp_path, at)
        assert code == 1
        assert names <= set(re.findall(r'alertname="(\w+)"', said))


def dashboard_and_rules_use_only_names_of_the_list() -> None:
    known = {metric.series + suffix for metric in metrics() for suffix in SUFFIXES} | {"up"}
    text = json.dumps(dashboard()) + rules()
    assert set(re.findall(r"\b(?:dl3d|dl3gen)_[a-z_0-9]+", text)) <= known


def the_dashboard_has_a_panel_for_each_metric_and_no_two_in_one_place() -> None:
    panels = [below for panel in dashboard()["panels"] for below in (panel, *panel.get("panels", []))]
    shown = [panel for panel in panels if panel["type"] != "row"]
    assert len(shown) == len(metrics())
    assert len({panel["id"] for panel in panels}) == len(panels)
    top = [panel["gridPos"] for panel in dashboard()["panels"]]
    assert len({(place["x"], place["y"]) for place in top}) == len(top)
