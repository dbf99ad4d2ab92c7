"""The other tests of RFC 2544 and the rates of RFC 2889, with a simulated generator and device."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dl3.bench.conduct import conduct
from dl3.bench.fake import course_of, job_of
from dl3.bench.known import Known
from dl3.bench.reset import measure_reset
from dl3.bench.testbed import Testbed
from dl3.model.fault import Fault
from dl3.model.results import BackToBack, Forwarding, FrameLoss, Recovery, Reset
from dl3.model.trial import Throughput
from dl3.record.reader import read
from dl3.search.throughput import Undecided
from dl3.trial.fake import FakeGenerator


def only(kind: Any, made: Any) -> Any:
    """The only result, which must be of this kind."""
    (result,) = made
    assert isinstance(result, kind)
    return result


def reports_the_loss_of_each_load(tmp_path: Path) -> None:
    run = course_of(FakeGenerator(device_pps=10e6), tmp_path)
    result = only(FrameLoss, conduct(run, job_of("frame loss"), None, Known()))
    assert [point.share for point in result.points] == [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    assert [point.loss_ratio for point in result.points[:2]] == pytest.approx([0.5, 8 / 18])
    assert [point.loss_ratio for point in result.points[-2:]] == [0, 0]
    assert result.points[0].pps == 20e6
    assert read(run.record).others == (result,)
    assert {trial.job for trial in read(run.record).trials} == {"1|x"}


@pytest.mark.parametrize(("test", "kind"), [("frame loss", FrameLoss), ("forwarding", Forwarding)])
def names_the_loads_without_a_valid_trial(tmp_path: Path, test: str, kind: type) -> None:
    def fall_behind(results: dict[str, Any]) -> None:
        for stream in results["streams"]:
            if 15e6 < stream["asked_pps"] < 19e6:
                stream["late"] = stream["sent"]

    run = course_of(FakeGenerator(device_pps=14e6, spoil=fall_behind), tmp_path)
    result = only(kind, conduct(run, job_of(test), None, Known()))
    assert result.invalid_shares == (0.9, 0.8)
    assert [point.share for point in result.points][:3] == [1, 0.7, 0.6]
    assert read(run.record).others == (result,)


def begins_at_the_line_where_it_is_known(tmp_path: Path) -> None:
    run = course_of(FakeGenerator(line_bps=1e9), tmp_path)
    result = only(FrameLoss, conduct(run, job_of("frame loss", step=0.05), None, Known()))
    assert [point.share for point in result.points] == [1, 0.95]
    assert result.points[0].pps == pytest.approx(1e9 / 84 / 8, rel=1e-6)


def reports_forwarding_rates(tmp_path: Path) -> None:
    run = course_of(FakeGenerator(), tmp_path)
    result = only(Forwarding, conduct(run, job_of("forwarding"), None, Known()))
    assert len(result.points) == 10
    assert result.at_most_offered_pps == pytest.approx(7.3e6, rel=1e-6)
    assert result.most_pps == pytest.approx(7.3e6, rel=1e-6)
    assert result.most_at_pps > 7.3e6


def finds_the_longest_burst_and_the_buffer_behind_it(tmp_path: Path) -> None:
    buffer, device, most = 5000, 5e6, 20e6
    run = course_of(FakeGenerator(device_pps=device, buffer_frames=buffer), tmp_path)
    job = job_of("back-to-back", repetitions=3, resolution=0.0001, seconds=10.0)
    result = only(BackToBack, conduct(run, job, None, Known()))
    longest = buffer / (1 - device / most)
    assert result.bursts == (result.frames,) * 3
    assert result.frames == pytest.approx(longest, abs=1)
    assert result.burst_pps == pytest.approx(most, rel=0.001)
    assert result.implied_buffer_s == pytest.approx(longest / most, rel=0.001)
    assert result.corrected_buffer_s == pytest.approx(buffer / most, rel=0.01)
    assert not result.is_at_least


def reports_that_no_burst_was_too_long(tmp_path: Path) -> None:
    run = course_of(FakeGenerator(device_pps=50e6), tmp_path)
    result = only(BackToBack, conduct(run, job_of("back-to-back", repetitions=5), None, Known()))
    assert (result.is_at_least, result.bursts) == (True, (20_000_000,))
    assert result.corrected_buffer_s == 0


def recovering(results: dict[str, Any]) -> None:
    """Frames are lost until a quarter of a second after each overload."""
    streams = results["streams"]
    if len(streams) == 2:
        pps = streams[0]["asked_pps"]
        streams[0].update(last_lost=round(1.25 * pps), sent=10**9, received=10**9 - 1, lost=1, lost_by_gaps=1)


def reports_the_time_to_the_last_lost_frame(tmp_path: Path) -> None:
    generator = FakeGenerator(spoil=recovering)
    run = course_of(generator, tmp_path)
    result = only(Recovery, conduct(run, job_of("recovery", repetitions=2), None, Known()))
    assert result.seconds == pytest.approx((0.25, 0.25), abs=1e-6)
    assert result.overload_pps == pytest.approx(1.1 * 7.3e6, rel=0.01)
    assert result.recovery_pps == pytest.approx(0.5 * 7.3e6, rel=0.01)
    base, more = [params["streams"] for method, params in generator.asked if method == "send"][-1]
    assert base["rate"] + more["rate"] == pytest.approx(result.overload_pps, rel=1e-6)
    assert more["frames"] / more["rate"] == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("late", "seconds", "is_at_most", "n_trials"),
    [((900, 0), 0.25, False, 2), ((900, 300, 700, 800), 0.25 + 300 / 3.65e6, True, 4)],
)
def adds_the_time_of_frames_that_were_left_out_when_no_trial_is_without(
    tmp_path: Path, late: tuple[int, ...], seconds: float, is_at_most: bool, n_trials: int
) -> None:
    turns = iter(late)

    def be_late(results: dict[str, Any]) -> None:
        recovering(results)
        if len(results["streams"]) == 2:
            results["streams"][0].update(late=next(turns))

    run = course_of(FakeGenerator(spoil=be_late), tmp_path)
    result = only(Recovery, conduct(run, job_of("recovery"), None, Known()))
    assert result.seconds == pytest.approx((seconds,), abs=2e-6)
    assert result.is_at_most == is_at_most
    assert sum(1 for trial in read(run.record).trials if trial.test == "recovery") == n_trials


def there_is_no_recovery_of_a_device_that_cannot_be_overloaded(tmp_path: Path) -> None:
    run = course_of(FakeGenerator(device_pps=50e6), tmp_path)
    why = (
        r"not applicable: .* the tester cannot overload .* \(110% of 20.000 Mpps is above its ceiling of 20.000 Mpps\)"
    )
    with pytest.raises(Undecided, match=why):
        conduct(run, job_of("recovery"), None, Known())


def reports_that_a_limit_is_not_known_when_the_tester_has_become_faster_since(tmp_path: Path) -> None:
    known, slow = Known(), course_of(FakeGenerator(ceiling_pps=10e6, device_pps=50e6), tmp_path)
    conduct(slow, job_of("throughput"), None, known)
    run = course_of(FakeGenerator(device_pps=50e6), tmp_path)
    with pytest.raises(Undecided, match=r"cannot overload .* \(its limit is not known: at least 10\.000 Mpps\)"):
        conduct(run, job_of("recovery"), None, known)


def gives_up_an_overload_above_the_ceiling_before_its_trials(tmp_path: Path) -> None:
    run = course_of(FakeGenerator(device_pps=19e6), tmp_path)
    with pytest.raises(Undecided, match=r"110% of 18\.\d* Mpps is above its ceiling of 20.000 Mpps"):
        conduct(run, job_of("recovery"), None, Known())
    assert {trial.test for trial in read(run.record).trials} == {"ceiling", "throughput"}


def searches_no_second_time_for_a_throughput_that_has_no_result(tmp_path: Path) -> None:
    def spoil(results: dict[str, Any]) -> None:
        for stream in results["streams"]:
            stream["lost_by_gaps"] += 7

    run, known = course_of(FakeGenerator(spoil=spoil), tmp_path), Known()
    with pytest.raises(Undecided, match="no result: "):
        conduct(run, job_of("throughput"), None, known)
    n_trials = len(read(run.record).trials)
    for test in ("latency", "recovery"):
        with pytest.raises(Undecided, match="begins with the throughput, and its search had no result: at "):
            conduct(run, job_of(test), None, known)
    assert len(read(run.record).trials) == n_trials


def searches_with_the_exceed_ratio_of_the_job_and_apart_from_others(tmp_path: Path) -> None:
    run, known = course_of(FakeGenerator(), tmp_path), Known()
    lenient, strict = (job_of("throughput", method="mlrsearch", exceed=exceed) for exceed in (0.5, 0.0))
    (forgiving,) = conduct(run, lenient, None, known)
    assert isinstance(forgiving, Throughput)
    assert (forgiving.exceed_ratio, forgiving.repetitions) == (0.5, 3)
    assert known.of_job(lenient) == forgiving
    assert known.of_job(strict) is None


class FakeBed:
    """After a reset the device loses all frames for a while."""

    def __init__(self, generator: FakeGenerator, seconds: float, port: str = "") -> None:
        self._generator, self._seconds, self._port = generator, seconds, port

    def reset_process(self) -> None:
        """Lose that many."""
        self._lose(self._generator.newest)

    def reset_port(self) -> None:
        """The same, or a Fault."""
        if self._port:
            raise Fault(self._port)
        self._lose(self._generator.newest)

    def _lose(self, results: dict[str, Any]) -> None:
        stream, whole_s = results["streams"][0], results["seconds"]
        pps = stream["asked_pps"]
        lost = round(min(self._seconds, whole_s * 0.75) * pps)
        end_s = whole_s * 0.25 + self._seconds
        last = stream["sent"] - 1 if end_s >= whole_s else round(end_s * pps) - 1
        stream.update(received=stream["sent"] - lost, lost=lost, lost_by_gaps=lost, last_lost=last)
        stream.update(longest_outage_us=self._seconds * 1e6 if end_s < whole_s else 7.0)


def testbed(generator: FakeGenerator, folder: Path, **effort: Any) -> Testbed:
    return Testbed(replace(course_of(generator, folder), seconds=1.0), job_of("reset", **effort), None, Known())


def reports_how_long_both_resets_take(tmp_path: Path) -> None:
    generator = FakeGenerator()
    ours = testbed(generator, tmp_path, repetitions=2)
    made = measure_reset(ours, FakeBed(generator, 0.5))
    assert [result.what for result in made] == ["process", "port"]
    for result in made:
        assert result.seconds == (0.5, 0.5)
        assert [lost / result.offered_pps for lost in result.lost] == pytest.approx([0.5, 0.5], rel=1e-6)
    assert read(ours.run.record).others == tuple(made)


def a_silence_without_loss_is_the_device_s_unless_the_tester_paused(tmp_path: Path) -> None:
    generator = FakeGenerator(spoil=lambda results: results["streams"][0].update(longest_silence_us=30_000.0))
    (process, _) = measure_reset(testbed(generator, tmp_path), FakeBed(generator, 0.0))
    assert (process.seconds, process.lost) == ((0.03,), (0,))

    def pause(results: dict[str, Any]) -> None:
        results["streams"][0].update(longest_silence_us=30_000.0)
        results["workers"][0].update(longest_gap_us=29_900.0)

    generator = FakeGenerator(spoil=pause)
    (process, _) = measure_reset(testbed(generator, tmp_path / "again"), FakeBed(generator, 0.01))
    assert process.seconds == (0.01,)


def waits_for_a_device_that_takes_long(tmp_path: Path) -> None:
    generator = FakeGenerator()
    ours = testbed(generator, tmp_path)
    (process, _) = measure_reset(ours, FakeBed(generator, 5.0))
    assert process.seconds == (5.0,)
    assert [trial.seconds for trial in read(ours.run.record).trials if trial.test == "reset"][:3] == [2.0, 4.0, 8.0]


class LinklessBed(FakeBed):
    """Down for 3 s; during the first the link is down too: the port accepts nothing, so no frame is numbered."""

    def _lose(self, results: dict[str, Any]) -> None:
        stream, whole_s, pps = results["streams"][0], results["seconds"], results["streams"][0]["asked_pps"]
        busy, end_s = round(pps), min(whole_s, whole_s * 0.25 + 3.0)
        sent, lost = stream["sent"] - busy, round((end_s - whole_s * 0.25 - 1.0) * pps)
        stream.update(late=busy, busy=busy, sent=sent, received=sent - lost, lost=lost, lost_by_gaps=lost)
        stream.update(last_lost=round((end_s - 1.0) * pps) - 1, longest_outage_us=3e6 if end_s < whole_s else 7.0)


def is_not_misled_by_frames_that_a_port_without_link_never_took(tmp_path: Path) -> None:
    generator = FakeGenerator()
    (process, _) = measure_reset(testbed(generator, tmp_path), LinklessBed(generator, 3.0))
    assert process.seconds == (3.0,)


class UnpluggedBed(LinklessBed):
    """The same, but the link is down for all of the 3 s."""

    def _lose(self, results: dict[str, Any]) -> None:
        super()._lose(results)
        if results["seconds"] * 0.75 < 3.0:
            results["ports"][1].update(link_up=False)


def a_link_that_is_down_at_the_end_asks_for_a_longer_trial(tmp_path: Path) -> None:
    generator = FakeGenerator()
    ours = testbed(generator, tmp_path)
    (process, _) = measure_reset(ours, UnpluggedBed(generator, 3.0))
    assert process.seconds == (3.0,)
    trials = [trial for trial in read(ours.run.record).trials if trial.test == "reset"]
    assert [trial.seconds for trial in trials] == [2.0, 4.0, 8.0] * 2
    assert any(why.startswith("link: ") for why in trials[0].invalid)


def does_the_reset_that_can_be_done(tmp_path: Path) -> None:
    generator = FakeGenerator()
    ours = testbed(generator, tmp_path)
    (made,) = measure_reset(ours, FakeBed(generator, 0.1, port="this port cannot be reset"))
    assert isinstance(made, Reset)
    assert made.what == "process"


def gives_up_a_device_that_never_comes_back(tmp_path: Path) -> None:
    generator = FakeGenerator()
    with pytest.raises(Undecided, match="did not forward again within 120 s"):
        measure_reset(testbed(generator, tmp_path), FakeBed(generator, 1000.0, port="no"))


def reports_that_the_device_cannot_be_reset(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="this device cannot be reset from here"):
        conduct(course_of(FakeGenerator(), tmp_path), job_of("reset"), None, Known())
