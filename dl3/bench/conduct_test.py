"""Jobs run with a simulated generator."""

from pathlib import Path

import pytest

from dl3.bench.conduct import conduct
from dl3.bench.fake import course_of, job_of
from dl3.bench.known import Known
from dl3.model.fault import Fault
from dl3.model.trial import Throughput, Trial
from dl3.record.reader import read
from dl3.trial.fake import FakeGenerator


def finds_a_throughput_and_reuses_it_from_then_on(tmp_path: Path) -> None:
    run, known = course_of(FakeGenerator(), tmp_path), Known()
    (result,) = conduct(run, job_of("throughput"), None, known)
    assert isinstance(result, Throughput)
    assert result.pps == pytest.approx(7.3e6, rel=0.005)
    trials = conduct(run, job_of("latency", "1|y", loads=(0.5,)), None, known)
    assert [(t.test, t.load, t.seconds, t.job) for t in trials if isinstance(t, Trial)] == [
        ("latency", 0.5, 1.0, "1|y")
    ]
    record = read(run.record)
    assert len(record.results) == 1
    assert record.trials[0].job == "1|x"


def finds_the_throughput_first_where_none_is_known(tmp_path: Path) -> None:
    run = course_of(FakeGenerator(), tmp_path)
    conduct(run, job_of("latency", loads=(0.1, 0.9)), None, Known())
    record = read(run.record)
    assert len(record.results) == 1
    assert [trial.load for trial in record.trials[-2:]] == [0.1, 0.9]


def takes_no_throughput_of_another_frame_or_job(tmp_path: Path) -> None:
    run, job = course_of(FakeGenerator(), tmp_path), job_of("throughput")
    conduct(run, job, None, Known())
    results = read(run.record).results
    known = Known.of({job.key: job}, results)
    assert known.of_job(job_of("latency"))
    assert not known.of_job(job_of("latency", frame="128"))
    assert not Known.of({}, results).of_job(job)


def reports_that_no_share_of_nothing_can_be_offered(tmp_path: Path) -> None:
    run = course_of(FakeGenerator(device_pps=0.0), tmp_path)
    with pytest.raises(Fault, match="no result"):
        conduct(run, job_of("latency"), None, Known())
