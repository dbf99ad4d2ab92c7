"""What is offered, what the devices are told, which stalls make a trial INVALID, and how trials are repeated."""

import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from harness.records import Maker
from harness.shapings import shaping

from dl3.bench import shape
from dl3.bench.shape import Invalid, Plan, Shaper, measure, parts_of, stall_sentence
from dl3.bench.site import ProgressListener
from dl3.control.generator import WorkerPause
from dl3.dut.linux import FAIR_QUEUE, PLAIN_QUEUE
from dl3.dut.shaping import Subscribers, kind_of, qos_keys, tc_lines
from dl3.model.campaign import DutSpec
from dl3.model.fault import UsageFault
from dl3.model.shaping import Shaping
from dl3.model.stream import Stream
from dl3.model.trial import Trial

BASE = Stream.model_validate(
    {"from": "left", "to": "right", "dst_mac": "02:00:00:00:00:01", "dst_ip": "198.19.0.1", "src_port": 7, "id": 3}
)
SPAN = (1_000_000_000, 2_000_000_000)


def _gap(at_ms: float, us: float) -> WorkerPause:
    return WorkerPause(worker=0, core=1, at_ns=round(at_ms * 1e6), us=us)


def each_rate_and_class_is_a_stream_with_a_flow_for_each_subscriber() -> None:
    plan = Plan(Subscribers(5, (8e5, 16e5)), frame=1000, seconds=9)
    parts = parts_of(plan, BASE)
    written = {part.name: part.stream.written() for part in parts}
    assert list(written) == ["strict-0", "rest-0", "strict-1", "rest-1"]
    assert [part.first for part in parts] == [0, 0, 2, 2]
    assert [one["dst_ip"] for one in written.values()] == [
        *({"first": "198.19.0.1", "count": 2},) * 2,
        *({"first": "198.19.0.3", "count": 3},) * 2,
    ]
    assert [(one["flows"], one["dscp"]) for one in written.values()] == [(2, 46), (2, 0), (3, 46), (3, 0)]
    rates = [float(str(one["rate"]).split()[0]) for one in written.values()]
    assert rates == pytest.approx([40, 260, 120, 780])  # frames of 8,000 bits
    assert sum(rates) == pytest.approx(plan.total_pps())
    assert all(
        int(cast(int, one["log_arrivals"])) >= rate * 10 for one, rate in zip(written.values(), rates, strict=True)
    )
    assert list(plan.rates()) == [8e5, 8e5, 16e5, 16e5, 16e5]


def dl3d_gets_a_line_for_each_subscriber_and_a_profile_for_each_rate(tmp_path: Path) -> None:
    keys = cast(dict[str, Any], qos_keys(Subscribers(3, (64e3, 1e6)), tmp_path)["qos"])
    assert keys["profiles"] == ["p0 shape 64000bit/s", "p1 shape 1000000bit/s"]
    lines = Path(keys["file"]).read_text().splitlines()
    assert lines[0] == "s0 number 1 down p0 address 198.19.0.1"
    assert lines[2] == "s2 number 3 down p1 address 198.19.0.3"


def linux_finds_the_class_of_each_of_many_subscribers_in_two_steps() -> None:
    n = 600
    lines = list(tc_lines(Subscribers(n, (1e6,)), FAIR_QUEUE))
    leaves = [re.search(r"ht (\w+):(\w+): match ip dst (\S+)/32 flowid 1:(\w+)$", line) for line in lines]
    found = [leaf.groups() for leaf in leaves if leaf]
    assert len(found) == n
    assert found[0] == ("2", "1", "198.19.0.1", "1")
    assert found[-1] == ("4", "58", "198.19.2.88", "258")
    assert sum("htb rate 1000000bit ceil 1000000bit" in line for line in lines) == n
    assert sum(line.endswith("fq_codel flows 16") for line in lines) == n
    assert sum("bfifo limit 25000" in line for line in tc_lines(Subscribers(2, (1e6,)), PLAIN_QUEUE)) == 2


def refuses_a_device_that_it_cannot_configure(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="--device x: expected one of dl3d, tc, external"):
        kind_of(DutSpec(name="x", kind="ovs"), Subscribers(1, (1e6,)), tmp_path)


def stalls_that_a_burst_bridges_make_no_trial_invalid() -> None:
    assert stall_sentence("dl3d", [_gap(1500, 900.0)] * 500, SPAN, 1000.0) == ""
    assert stall_sentence("dl3d", [_gap(1500, 1900.0)], SPAN, 1000.0) == ""  # 0.09 % of the time
    assert stall_sentence("dl3d", [_gap(900, 50_000.0), _gap(2100, 50_000.0)], SPAN, 1000.0) == ""  # before and after


def longer_stalls_do() -> None:
    assert stall_sentence("dl3d", [_gap(1500, 3000.0), _gap(1600, 2000.0)], SPAN, 1000.0) == (
        "gaps: workers of dl3d stalled 2 times for longer than 1,000 us, up to 3,000 us; subscribers can have lost 0.30% of "
        "their rates, more than 0.1%"
    )


class _Run:
    """Keeps what is recorded."""

    trial_s_beside = 0.4
    streams = (BASE,)
    listener = ProgressListener()

    def __init__(self) -> None:
        self.kept: list[object] = []

    def keep(self, noun: object) -> None:
        self.kept.append(noun)


def _measured(monkeypatch: pytest.MonkeyPatch, n_invalid: int, run: _Run) -> Shaping:
    outcomes = [("gaps: workers stalled",)] * n_invalid + [()]

    def trial(_self: Shaper) -> tuple[Trial, dict[str, Any]]:
        return Maker().trial("1024", 1e5, test="shaping", invalid=outcomes.pop(0)), {}

    monkeypatch.setattr(shape.Shaper, "trial", trial)
    monkeypatch.setattr(shape.Shaper, "result", lambda _self, _made, _logs, n: shaping(n_invalid=n))
    plan = Plan(Subscribers(1000, (1e6,)), retries=2)
    return measure(cast(Any, run), cast(Any, None), plan)


def an_invalid_trial_is_repeated_and_gives_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    run = _Run()
    assert _measured(monkeypatch, 2, run).n_invalid == 2
    assert [type(one) for one in run.kept] == [Shaping]
    with pytest.raises(Invalid, match="1,000 subscribers: all 3 trials were INVALID, the last because gaps: workers"):
        _measured(monkeypatch, 3, run)
    assert len(run.kept) == 1


def the_longest_stall_that_counts_for_nothing_is_that_of_the_fastest_subscriber() -> None:
    assert Subscribers(2, (64e3, 1e9)).bridged_us == pytest.approx(1000)
    assert Subscribers(1, (64e3,)).bridged_us == pytest.approx(3076 * 8 / 64e3 * 1e6)
    assert np.isclose(Subscribers(1, (1e9,)).memory_mib, 296)
