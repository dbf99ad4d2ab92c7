"""A real Prometheus beside 'dl3 metrics', in a namespace of their own, and what it answers to queries."""

import http.client
import json
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dl3.lab.namespace import Lab, Namespace
from dl3.lab.process import Process
from dl3.metrics.rules import rules
from harness.wire import wait_until
from harness.wired import TOP

START_S = 120.0
HOST, PORT = "127.0.0.1", 9090
JOB = "dl3"  # as the alert rules name it
CONFIG = {
    "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
    "rule_files": ["rules.yml"],
    "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": ["127.0.0.1:9883"]}]}],
}


@dataclass(frozen=True)
class Prometheus:
    """The server and the exporter."""

    inside: Namespace
    exporter: Process

    def get(self, path: str, **query: str) -> Any:
        """The data of its answer; None if there is no answer yet."""
        with self.inside.entered():
            connection = http.client.HTTPConnection(HOST, PORT, timeout=60)
            try:
                connection.connect()
            except OSError:
                return None
        try:
            connection.request("GET", f"{path}?{urllib.parse.urlencode(query)}")
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return json.loads(text)["data"] if response.status == 200 else None

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query."""
        found = self.get("/api/v1/query", query=expression)
        return found["result"] if found else []

    def value(self, expression: str) -> float | None:
        """The value of the only series; None if there is none."""
        found = self.query(expression)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def wait_for(self, expression: str, wanted: float) -> None:
        """Return once the query has this result."""
        wait_until(lambda: self.value(expression) == wanted, f"{expression} was {wanted:g}", START_S)

    def states(self) -> dict[str, str]:
        """The state of each alert rule: inactive, pending or firing."""
        groups = (self.get("/api/v1/rules") or {"groups": []})["groups"]
        return {rule["name"]: rule["state"] for group in groups for rule in group["rules"]}


@contextmanager
def prometheus(lab: Lab, options: Sequence[str]) -> Iterator[Prometheus]:
    """Both, running; `options` are those of 'dl3 metrics'."""
    inside = lab.namespace("metrics")
    inside.ip("link", "set", "lo", "up")
    with tempfile.TemporaryDirectory(prefix="dl3-prometheus-") as name:
        folder = Path(name)
        (folder / "prometheus.yml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
        (folder / "rules.yml").write_text(rules(), encoding="utf-8")
        flags = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        words = inside.command("prometheus", *flags, f"--web.listen-address={HOST}:{PORT}")
        reading = inside.command(sys.executable, "-m", "dl3", "metrics", *options)
        exporter = Process("exporter", reading, folder / "exporter.log", {"PYTHONPATH": str(TOP)})
        server = Process("prometheus", words, folder / "prometheus.log")
        try:
            made = Prometheus(inside, exporter)
            server.wait_until(lambda: made.value(f'up{{job="{JOB}"}}') == 1, "scraped the exporter", START_S)
            yield made
        finally:
            server.stop()
            exporter.stop()


def promtool(*words: str, given: str = "") -> None:
    """Check something; it must have nothing to say."""
    run = subprocess.run(["promtool", *words], input=given, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, ""), run.stderr
