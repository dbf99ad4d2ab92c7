"""The table of idle modes, and what the command refuses."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dl3.cli import idle as method
from dl3.cli.idle import noise_in_short, ring_bits_of, row, show
from dl3.cli.main import app
from dl3.model.fault import UsageFault
from dl3.model.results import Idle, IdleMode


def _mode(**changes: object) -> IdleMode:
    values: dict[str, object] = {
        "idle": "sleep",
        "woken_by": "frames",
        "dl3d_shares": (0.01, 0.016, 0.3),
        "asleep_shares": (0.98, 0.99, 0.97),
        "dl3gen_shares": (0.02,),
        "p50_ns": (52_000.0,),
        "p99_9_ns": (1_100_000.0,),
        "invalid_latencies": 0,
        "pps": (7.2e6, 7.1e6, 7.4e6),
        "is_at_least": False,
        "steps_sent": (1_000, 1_000, 1_000),
        "steps_lost": (0, 40, 2_000),
        "invalid_steps": 0,
    }
    return IdleMode.model_validate({**values, **changes})


def _result(*modes: IdleMode) -> Idle:
    return Idle(
        at="now",
        campaign="now",
        frame="64",
        seconds=5,
        latency_pps=1000,
        step_pps=6.39e6,
        step_seconds=0.2,
        quiet_seconds=0.6,
        modes=modes,
        noise=("share: a probe received only 50.0% of core 0",),
        facts={},
    )


def has_medians_of_rounds_and_sums_of_steps_in_its_rows() -> None:
    assert row(_mode()) == ("sleep", "frames", "1.6", "98.0", "2.0", "52.0", "1,100.0", "7.200", "2 of 3", 2_040)
    assert row(_mode(is_at_least=True))[7] == ">= 7.200"
    assert row(_mode(p50_ns=(), p99_9_ns=()))[5:7] == ("-", "-")
    assert row(_mode(idle="poll", woken_by=""))[:2] == ("poll", "-")


def prints_the_table_with_its_terms(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(method, "say", lambda text: print(text))
    show(_result(_mode(idle="poll", invalid_steps=2), _mode()), 2048)
    reported = capsys.readouterr().out
    assert "rings of 2,048, frames of 64 bytes" in reported
    assert "6.390 Mpps (90% of the lower throughput) for 0.2 s" in reported
    assert "idle: poll: 2 steps remained INVALID and are omitted" in reported
    assert "noisy, share: a probe received only 50.0% of core 0" in reported


def reports_the_first_noise_of_each_kind() -> None:
    found = noise_in_short(["share: 50% of core 0", "steal: 0.5%", "share: 40% of core 1", "share: 30% of core 0"])
    assert list(found) == ["share: 50% of core 0; 2 more like it", "steal: 0.5%"]


def needs_a_lab_of_its_own() -> None:
    done = CliRunner().invoke(app, ["bench", "idle"])
    assert isinstance(done.exception, UsageFault)
    assert "use --lab" in str(done.exception)


def needs_rings_that_memif_has(tmp_path: Path) -> None:
    assert ring_bits_of(2048) == 11
    words = ["bench", "idle", "--lab", "--descriptors", "1000", "--record", str(tmp_path / "r")]
    done = CliRunner().invoke(app, words)
    assert "--descriptors 1000: the number of slots of a memif ring is a power of two" in str(done.exception)
