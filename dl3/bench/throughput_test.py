"""A complete measurement with a simulated generator."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dl3.bench.latency import measure_latency, newest
from dl3.bench.site import FRAMES, Lines, ProgressListener, Run, frames_for, streams_of
from dl3.bench.throughput import Wanted, bounds_of, budget_s, find_all
from dl3.model.fault import Fault, UsageFault
from dl3.model.stream import Stream
from dl3.model.trial import Throughput
from dl3.record.reader import read
from dl3.search.throughput import SearchSettings
from dl3.trial.fake import FakeGenerator
from dl3.trial.order import Site
from dl3.trial.run import Runner


class NotingListener(ProgressListener):
    """Records all events."""

    def __init__(self) -> None:
        self.left: list[tuple[str, float]] = []
        self.faults: list[tuple[str, Fault]] = []

    def on_left(self, frame: str, seconds: float) -> None:
        """Record the event."""
        self.left.append((frame, seconds))

    def on_fault(self, frame: str, fault: Fault) -> None:
        """Record the event."""
        self.faults.append((frame, fault))


def run(generator: FakeGenerator, folder: Path, listener: ProgressListener | None = None) -> Run:
    runner = Runner(Site(generator, campaign="now", facts={"kernel": "6"}), sleep=lambda _: None)
    streams = streams_of(generator, None)
    return Run(runner, streams, folder / "r.jsonl", seconds=1.0, listener=listener or ProgressListener())


class Waiting(ProgressListener):
    """Accepts a result at any time."""

    def is_waiting(self) -> bool:
        return True


def a_search_that_is_cut_short_reports_a_range_and_the_reason(tmp_path: Path) -> None:
    wanted = Wanted(("64",), SearchSettings(resolution=1e-4), method="binary")
    (found,) = find_all(run(FakeGenerator(), tmp_path, Waiting()), wanted)
    result = found.result
    assert result.noise == ("time: the search was ended before it reached its resolution of 0.01%",)
    assert result.range_pps
    low, high = result.range_pps
    assert low <= 7.3e6 < high
    assert read(tmp_path / "r.jsonl").results == (result,)
    (patient,) = find_all(run(FakeGenerator(), tmp_path), wanted)
    assert (patient.result.noise, patient.result.range_pps) == ((), None)
    assert patient.result.n_trials > result.n_trials


def has_a_result_for_each_frame_size_and_records_all_trials(tmp_path: Path) -> None:
    listener, generator = NotingListener(), FakeGenerator()
    found = find_all(run(generator, tmp_path, listener), Wanted(("64", "imix")))
    assert [one.result.frame for one in found] == ["64", "imix"]
    for one in found:
        assert one.result.pps == pytest.approx(7.3e6, rel=0.005)
        assert one.result.upper_pps is not None
        assert one.result.pps <= 7.3e6 < one.result.upper_pps
        assert (one.result.limited_by, one.result.campaign, one.result.facts) == ("dut", "now", {"kernel": "6"})
        assert one.best
        assert one.best.account.lost == 0
    record = read(tmp_path / "r.jsonl")
    assert {trial.test for trial in record.trials} == {"ceiling", "throughput"}
    assert record.results == tuple(one.result for one in found)
    assert record.left_out == ()
    assert listener.left[0] == ("64", budget_s(run(generator, tmp_path), Wanted(("64", "imix"))))
    assert listener.left[-1] == ("imix", 0)


def reports_that_the_generator_is_the_limit(tmp_path: Path) -> None:
    (found,) = find_all(run(FakeGenerator(device_pps=50e6), tmp_path), Wanted(("64",)))
    assert (found.result.pps, found.result.limited_by) == (20e6, "generator")


def accepts_full_speed_without_loss_as_the_result(tmp_path: Path) -> None:
    one = run(FakeGenerator(device_pps=50e6), tmp_path)
    (found,) = find_all(one, Wanted(("64",), SearchSettings(repetitions=3)))
    assert (found.result.pps, found.result.limited_by, found.result.n_trials) == (20e6, "generator", 3)
    assert [trial.test for trial in read(one.record).trials] == ["ceiling"] * 3


@pytest.mark.parametrize("method", ["binary", "mlrsearch"])
def takes_a_result_only_from_trials_of_full_length(tmp_path: Path, method: Any) -> None:
    one = replace(run(FakeGenerator(device_pps=50e6), tmp_path), seconds=60.0)
    (found,) = find_all(one, Wanted(("64",), SearchSettings(repetitions=2), method=method))
    assert (found.result.pps, found.result.limited_by, found.result.n_trials) == (20e6, "generator", 2)
    assert [trial.seconds for trial in read(one.record).trials] == [2.0, 60.0, 60.0]


def searches_on_where_only_a_short_trial_at_full_speed_lost_nothing(tmp_path: Path) -> None:
    def spoil(results: dict[str, Any]) -> None:
        stream = results["streams"][0]
        if results["seconds"] > 2 and stream["offered_pps"] > 19e6:
            stream.update(received=stream["sent"] - 1, lost=1, lost_by_gaps=1)

    one = replace(run(FakeGenerator(device_pps=50e6, spoil=spoil), tmp_path), seconds=60.0)
    (found,) = find_all(one, Wanted(("64",)))
    assert found.result.pps == pytest.approx(19e6, rel=0.01)
    assert found.result.limited_by == "dut"


def needs_all_repetitions_at_full_speed(tmp_path: Path) -> None:
    turns = iter(range(99))

    def spoil(results: dict[str, Any]) -> None:
        results["streams"][0].update({"received": 19_999_999, "lost": 1, "lost_by_gaps": 1} if next(turns) == 3 else {})

    (found,) = find_all(
        run(FakeGenerator(device_pps=50e6, spoil=spoil), tmp_path), Wanted(("64",), SearchSettings(repetitions=2))
    )
    assert found.result.pps < 20e6


def reports_that_the_line_is_the_limit(tmp_path: Path) -> None:
    (found,) = find_all(run(FakeGenerator(line_bps=1e9), tmp_path), Wanted(("64",)))
    assert found.result.limited_by == "line"
    assert found.result.pps == pytest.approx(1e9 / 84 / 8, rel=1e-6)
    assert found.result.line_share == pytest.approx(1, rel=1e-6)


def goes_no_higher_than_asked(tmp_path: Path) -> None:
    (found,) = find_all(run(FakeGenerator(), tmp_path), Wanted(("64",), max_pps=1e6))
    assert (found.result.pps, found.result.limited_by) == (1e6, "asked")
    assert (found.result.upper_pps, found.result.ended_pps) == (None, 1e6), "no trial lost anything"


def goes_on_with_the_next_size_when_one_has_no_result(tmp_path: Path) -> None:
    def spoil(results: dict[str, Any]) -> None:
        stream = results["streams"][0]
        stream["lost_by_gaps"] += 1 if stream["sent_bytes"] == 64 * stream["sent"] else 0

    listener = NotingListener()
    found = find_all(run(FakeGenerator(spoil=spoil), tmp_path, listener), Wanted(("64", "128")))
    assert [one.result.frame for one in found] == ["128"]
    assert listener.faults[0][0] == "64"
    assert "no result: at " in str(listener.faults[0][1])
    assert len(read(tmp_path / "r.jsonl").results) == 1


def gives_up_when_the_generator_is_starved(tmp_path: Path) -> None:
    def starve(results: dict[str, Any]) -> None:
        results["streams"][0]["late"] = 9_999 if results["streams"][0]["asked_pps"] else 0

    listener = NotingListener()
    one = run(FakeGenerator(device_pps=1e6, spoil=starve), tmp_path, listener)
    assert find_all(one, Wanted(("64",), SearchSettings(retries=2))) == []
    wanted = r"no result: the generator fell behind 3 times, even at 0\.99\d Mpps, though it has reached 20\.000: give"
    assert re.match(wanted, str(listener.faults[0][1]))
    assert len(read(one.record).trials) == 4


def allows_for_refused_frames_that_cost_the_generator_little(tmp_path: Path) -> None:
    def refuse(results: dict[str, Any]) -> None:
        stream = results["streams"][0]
        asked, sent = stream["asked_pps"], stream["sent"]
        stream["refused"] = 0 if asked else stream["lost"]
        stream["late"] = round(sent * 0.05) if asked > 0.9e6 else 0

    (found,) = find_all(run(FakeGenerator(device_pps=1e6, spoil=refuse), tmp_path), Wanted(("64",)))
    assert found.result.limited_by == "generator"
    assert 0.8e6 < found.result.pps <= 0.9e6


def fails_when_the_generator_sends_nothing(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="no result for frames of 64: dl3gen sent nothing at its maximum rate"):
        find_all(run(FakeGenerator(ceiling_pps=0.1), tmp_path), Wanted(("64",)))


def takes_a_ceiling_near_the_line_for_the_line_s(tmp_path: Path) -> None:
    generator = FakeGenerator(ceiling_pps=1.4840e6, line_bps=1e9, device_pps=9e9)
    one = run(generator, tmp_path)
    find_all(one, Wanted(("64",)))
    bounds = bounds_of(read(one.record).trials[0], Lines((1e9,), (1.0,)), 0)
    assert (round(bounds.high_pps), bounds.high_is) == (1488095, "line")
    bounds = bounds_of(read(one.record).trials[0], Lines((2e9,), (1.0,)), 0)
    assert (round(bounds.high_pps), bounds.high_is) == (1484000, "generator")


def fills_the_line_that_is_full_first() -> None:
    streams = [
        Stream.model_validate({"from": "left", "rate": "3 Mpps"}),
        Stream.model_validate({"from": "right", "rate": "1 Mpps"}),
    ]
    lines = Lines.of(FakeGenerator(line_bps=1e9), streams)
    assert lines.most_pps(64) == pytest.approx(1e9 / 84 / 8 / 0.75)
    assert lines.total_bps == 2e9
    assert Lines.of(FakeGenerator(), streams).most_pps(64) == 0


def measures_latency_at_shares_of_the_throughput(tmp_path: Path) -> None:
    one = run(FakeGenerator(), tmp_path)
    results = [found.result for found in find_all(one, Wanted(("64",)))]
    trials = measure_latency(one, results, (0.1, 0.5))
    assert [(trial.test, trial.load) for trial in trials] == [("latency", 0.1), ("latency", 0.5)]
    assert trials[1].asked_pps == results[0].pps / 2
    assert read(one.record).trials[-2:] == tuple(trials)


def tries_a_latency_trial_again_that_is_invalid(tmp_path: Path) -> None:
    turns = iter(range(99))
    spoil = lambda results: results.update(tsc_offset_ns=500.0 if next(turns) < 5 else 0.0)  # noqa: E731
    one = run(FakeGenerator(), tmp_path)
    results = [found.result for found in find_all(one, Wanted(("64",)))]
    again = run(FakeGenerator(spoil=spoil), tmp_path / "again")
    (trial,) = measure_latency(again, results, (0.5,))
    assert not trial.invalid
    assert len(read(again.record).trials) == 3


COMMON = {"dut": "dl3d", "frame": "64", "pps": 1.0, "campaign": "1", "goal_loss_ratio": 0.0, "facts": {}}


def takes_the_newest_result_of_the_same_device() -> None:
    def result(**values: Any) -> Throughput:
        return Throughput.model_construct(**{**COMMON, **values})

    later = [result(campaign="2", pps=2.0), result(campaign="2", pps=2.1, goal_loss_ratio=0.005)]
    results = [result(), *later, result(dut="l3fwd", pps=3.0), result(frame="imix", pps=4.0)]
    assert [one.pps for one in newest(results, "dl3d", ("imix", "64", "1518"))] == [4.0, 2.0]


def takes_no_result_over_the_wire_of_another_test() -> None:
    def over(wire: str, **values: Any) -> Throughput:
        return Throughput.model_construct(**{**COMMON, **values, "facts": {"lab": {"wire": wire}}})

    results = [over("memif", pps=16.0), over("memif", pps=2.0, frame="1518"), over("veth", pps=0.6)]
    found = {wire: [one.pps for one in newest(results, "dl3d", ("64", "1518"), wire)] for wire in ("memif", "veth", "")}
    assert found == {"memif": [16.0, 2.0], "veth": [0.6], "": [16.0, 2.0]}


def needs_streams_that_the_generator_sends() -> None:
    with pytest.raises(UsageFault, match="has no streams"):
        streams_of(FakeGenerator(streams=[]), None)
    with pytest.raises(UsageFault, match="stream west is only received"):
        streams_of(FakeGenerator(), [Stream.model_validate({"name": "west", "to": "left"})])
    replay = {"from": "left", "to": "right", "pcap": "x.pcap"}
    with pytest.raises(UsageFault, match=r"dl3gen's file: a stream replays x\.pcap, and loss cannot be measured"):
        streams_of(FakeGenerator(streams=[replay]), None)
    replaying = FakeGenerator(streams=[{**replay, "stamp": True}])
    assert frames_for(streams_of(replaying, None), replaying) == ("capture",)


def leaves_out_frames_that_are_too_small_for_headers_and_stamp() -> None:
    assert frames_for([Stream()], FakeGenerator()) == FRAMES
    six = [Stream.model_validate({"dst_ip": "2001:db8::1"})]
    assert frames_for(six, FakeGenerator()) == ("84", "128", "256", "512", "1024", "1280", "1518")


@pytest.mark.parametrize(
    ("mtus", "jumbo"), [((0, 0), ()), ((1500, 9000), ()), ((9000, 9600), ("9018",)), ((9600, 9600), ("9618",))]
)
def adds_jumbo_frames_where_both_ports_take_them(mtus: tuple[int, int], jumbo: tuple[str, ...]) -> None:
    generator = FakeGenerator(mtus=mtus)
    assert frames_for(streams_of(generator, None), generator) == (*FRAMES, *jumbo)
    six = Stream.model_validate({"from": "left", "to": "right", "dst_ip": "2001:db8::1"})
    assert frames_for([six], generator)[6:] == ("1518", *jumbo)


def gives_up_where_nothing_ever_comes_back(tmp_path: Path) -> None:
    listener = NotingListener()
    found = find_all(run(FakeGenerator(device_pps=0.0), tmp_path, listener), Wanted(("64",)))
    assert found == []
    ((frame, fault),) = listener.faults
    assert frame == "64"
    assert "no result: none of " in str(fault)
    assert len(read(tmp_path / "r.jsonl").trials) < 12
