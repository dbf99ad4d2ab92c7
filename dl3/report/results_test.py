"""The order in which results are shown."""

from harness.records import Maker

from dl3.model.campaign import Finished, Skipped
from dl3.report.results import gather


def shows_latency_by_load_although_the_mean_of_a_mix_varies() -> None:
    loads = ((1e6, 209.93), (5e6, 209.91), (9e6, 209.92))
    trials = [Maker().trial("imix", pps, test="latency", mean_bytes=mean) for pps, mean in loads]
    assert [trial.asked_pps for trial in gather(trials).latencies] == [1e6, 5e6, 9e6]


def leaves_out_no_job_that_was_finished_after_all() -> None:
    maker = Maker()
    skipped = [Skipped(at="1", campaign=maker.campaign, job=job, reason="no answer") for job in ("a", "b")]
    finished = Finished(at="2", campaign=maker.campaign, job="a", seconds=1, planned_seconds=1)
    of_another = finished.model_copy(update={"campaign": "before", "job": "b"})
    throughput_on_the_way = maker.answer("64", 1e6).model_copy(update={"job": "b"})
    results = gather([*skipped, finished, of_another, throughput_on_the_way])
    assert [one.job for one in results.skipped] == ["b"]
