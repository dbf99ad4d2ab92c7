"""The order in which results are shown."""

from harness.campaigns import white_paper
from harness.records import Maker

from dl3.model.campaign import Finished, Plan, Skipped
from dl3.model.trial import Throughput
from dl3.report.groups import Groups
from dl3.report.measures import figures
from dl3.report.names import job_name, table_names
from dl3.report.results import gather
from dl3.report.summary import sentences
from dl3.report.texts import words_in
from dl3.report.words import Language


def over(wire: str) -> Maker:
    return Maker(facts=(("lab", {"wire": wire}),))


def shows_latency_by_load_although_the_mean_of_a_mix_varies() -> None:
    loads = ((1e6, 209.93), (5e6, 209.91), (9e6, 209.92))
    trials = [Maker().trial("imix", pps, test="latency", mean_bytes=mean) for pps, mean in loads]
    assert [trial.asked_pps for trial in gather(trials).latencies] == [1e6, 5e6, 9e6]


def keeps_a_result_beside_one_over_another_wire() -> None:
    searches = [over(wire).result("64", pps, limited_by="generator") for wire, pps in (("memif", 16e6), ("veth", 6e5))]
    results, words = gather(searches), words_in(Language.EN)
    assert [one.pps for one in results.searches] == [16e6, 6e5]
    assert list(table_names(results.series, words).values()) == ["dl3d (memif)", "dl3d (veth)"]
    assert next(iter(table_names(results.series, words_in(Language.ZH)).values())) == "dl3d（memif）"
    (text,) = sentences(results, words)
    assert "dl3d (memif) at least 16.0 Mpps, dl3d (veth) at least 0.600 Mpps" in text
    (chinese,) = sentences(results, words_in(Language.ZH))
    assert "dl3d（memif）至少为 16.0 Mpps、dl3d（veth）至少为 0.600 Mpps" in chinese
    assert [(one.value, one.wire) for one in figures(results)] == [(16e6, "memif"), (6e5, "veth")]
    assert len({one.question for one in figures(results)}) == 2


def reports_in_chinese_that_a_rate_is_at_least_so_much() -> None:
    words = words_in(Language.ZH)
    (text,) = sentences(gather([Maker().result("64", 15.3e6, limited_by="generator")]), words)
    assert "吞吐量至少为 15.3 Mpps" in text
    (text,) = sentences(gather([Maker().result("64", 15.3e6)]), words)
    assert "吞吐量为 15.3 Mpps" in text


def parts_the_names_of_series_by_a_chinese_comma() -> None:
    names = table_names(gather(white_paper()).series, words_in(Language.ZH)).values()
    assert any(name.startswith("dl3d，大页") for name in names)
    assert not [name for name in names if "dl3d, " in name]


def counts_the_cases_that_were_measured_in_part_and_names_no_absent_ones_where_there_are_none() -> None:
    record = white_paper()
    plan = next(one for one in record if isinstance(one, Plan))
    here = plan.model_copy(update={"cases": tuple(case for case in plan.cases if case.jobs)})
    n, n_jobs = len(here.cases), sum(len(case.jobs) for case in here.cases)
    words = words_in(Language.EN)
    (text,) = sentences(gather([here]), words)
    assert text == f"0 of {n} cases were measured on this machine; 0 of {n_jobs} jobs produced a result."
    first = next(one for one in record if isinstance(one, Throughput))
    text = sentences(gather([here, first]), words)[0]
    assert (
        text
        == f"1 of {n} cases were measured on this machine (1 of them partly); 1 of {n_jobs} jobs produced a result."
    )


def counts_cases_of_which_some_values_are_not_applicable() -> None:
    record = white_paper()
    with_result = [one for one in record if not isinstance(one, Skipped)]
    plan = next(one for one in record if isinstance(one, Plan))
    last, words = [job for case in plan.cases for job in case.jobs][-1], words_in(Language.EN)
    text = sentences(gather([*with_result, Maker().result("1024", 1e6).model_copy(update={"job": last.key})]), words)[0]
    partly = [case.key for case in plan.cases if case.jobs and case.left_out]
    assert partly == ["1.2", "1.7"]
    assert "10 of 19 cases were measured on this machine (2 of them partly)" in text


def keeps_the_trials_of_one_wire_from_those_of_another() -> None:
    trials = [over(wire).trial("64", 1e6) for wire in ("memif", "veth")]
    results = gather([*trials, over("veth").result("64", 1e6)])
    assert Groups(results).lines(results.searches[0]) == "2"
    assert results.without_result == (("dl3d", "64"),)


def names_no_wire_where_all_is_over_the_same() -> None:
    results = gather([over("memif").result(frame, 1e6) for frame in ("64", "128")])
    assert list(table_names(results.series, words_in(Language.EN)).values()) == ["dl3d"]


def names_a_job_without_a_result_in_words() -> None:
    results = gather(white_paper())
    (skipped,) = results.skipped
    job = results.jobs[skipped.job]
    english = job_name(skipped.job, results, words_in(Language.EN))
    assert english.startswith(f"{job.case}, {job.setup.dut.name}, {job.test}, {job.frame}-byte frames")
    assert "|" not in english
    assert "吞吐量" in job_name(skipped.job, results, words_in(Language.ZH))
    assert job_name("of no plan", results, words_in(Language.EN)) == "of no plan"


def leaves_out_no_job_that_was_finished_after_all() -> None:
    maker = Maker()
    skipped = [Skipped(at="1", campaign=maker.campaign, job=job, reason="no result") for job in ("a", "b")]
    finished = Finished(at="2", campaign=maker.campaign, job="a", seconds=1, planned_seconds=1)
    of_another = finished.model_copy(update={"campaign": "before", "job": "b"})
    throughput_on_the_way = maker.result("64", 1e6).model_copy(update={"job": "b"})
    results = gather([*skipped, finished, of_another, throughput_on_the_way])
    assert [one.job for one in results.skipped] == ["b"]
