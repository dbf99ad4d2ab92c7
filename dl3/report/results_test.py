"""The order in which results are shown."""

from harness.records import Maker

from dl3.report.results import gather


def shows_latency_by_load_although_the_mean_of_a_mix_varies() -> None:
    loads = ((1e6, 209.93), (5e6, 209.91), (9e6, 209.92))
    trials = [Maker().trial("imix", pps, test="latency", mean_bytes=mean) for pps, mean in loads]
    assert [trial.asked_pps for trial in gather(trials).latencies] == [1e6, 5e6, 9e6]
