"""Each location and each cause is named with its figures; no cause is named without evidence."""

import re
import tomllib
from pathlib import Path

import pytest

from dl3.model.evidence import Evidence
from dl3.model.trial import Trial
from dl3.report.explain import explain, findings, plain
from dl3.report.explain.fake import event, gap, loss, seen, trial, work
from dl3.report.explain.verdicts import PLACES
from dl3.report.places import places_of
from dl3.report.texts import words_in
from dl3.report.words import Language

TOP = Path(__file__).resolve().parent.parent.parent.parent
EN, ZH = words_in(Language.EN), words_in(Language.ZH)
FULL = "dut rx ring full"


def reported(made: Trial) -> str:
    return "\n".join(explain(made, EN))


def keys(made: Trial) -> list[str]:
    return [finding.key for finding in findings(made)]


def taken(**more: object) -> Trial:
    """A kworker had the core for the whole stall of 312 µs: 3,120 frames arrived, 2,048 fitted into the ring."""
    evidence = seen([gap(200, 312)], [event(200, 310)], **more)
    return trial({FULL: 1072}, [loss(200, 1072)], evidence)


def names_who_took_the_core_when_and_what_that_cost() -> None:
    assert reported(taken()) == (
        "1,072 packets, 100.0% of those lost: device's receive ring full.\n"
        "Core 3 was taken from dl3d's worker 0 for 312 µs at 0.200 s by kworker/3:1; "
        "at 10 Mpps a ring of 2,048 descriptors fills in 205 µs; 1,072 packets lost (1,072 expected with an empty ring at the start): "
        "isolate core 3 (isolcpus, or move kworker/3:1 away) or deepen the ring."
    )


def reports_the_same_in_chinese() -> None:
    assert "\n".join(explain(taken(), ZH)) == (
        "1,072 个包，占丢包总数的 100.0%：被测设备接收环满。\n"
        "核 3 被其他线程占用（kworker/3:1），dl3d 的工作线程 0 无法运行，始于 0.200 s，持续 312 µs；"
        "在 10 Mpps 下，深度为 2,048 的接收环 205 µs 即满；丢失 1,072 个包（若环起初为空，预计丢失 1,072 个）。"
        "建议：隔离核 3（isolcpus，或将 kworker/3:1 移走），或加深接收环。"
    )


def puts_stalls_of_one_cause_together_and_reports_the_worst() -> None:
    evidence = seen([gap(200, 300), gap(500, 900)], [event(200, 300), event(500, 700), event(500.7, 200, "sshd")])
    made = trial({FULL: 7904}, [loss(200, 952), loss(500, 6952)], evidence)
    assert "Core 3 was taken from dl3d's worker 0 2 times, at worst for 900 µs at 0.500 s by kworker/3:1 and 1 " in (
        reported(made)
    )
    (cause,) = [finding for finding in findings(made) if finding.topic == "time"]
    assert (cause.frames, cause.values["n"], cause.values["expected"]) == (7904, 2, 7904)


def distinguishes_different_threads_that_took_the_core() -> None:
    evidence = seen([gap(200, 300), gap(500, 900)], [event(200, 300, "sshd"), event(500, 900)])
    made = trial({FULL: 7904}, [loss(200, 952), loss(500, 6952)], evidence)
    causes = [(one.values["who"], one.frames) for one in findings(made) if one.topic == "time"]
    assert causes == [("kworker/3:1", 6952), ("sshd", 952)]


def sums_up_what_is_more_than_one_reads() -> None:
    gaps = [gap(100 * i, 300) for i in range(1, 9)]
    events = [event(100 * i, 300, f"thief{i}") for i in range(1, 9)]
    made = trial({FULL: 8 * 952}, [loss(100 * i, 952) for i in range(1, 9)], seen(gaps, events))
    assert keys(made)[1:] == ["taken.ring"] * 5 + ["more"]
    assert "2,856 packets were lost in 3 other stalls." in reported(made)


@pytest.mark.parametrize(
    ("evidence", "key", "words"),
    [
        (
            seen([gap(200, 312)], [event(200, 250, "virtio0-rx", what="interrupt")]),
            "interrupted.ring",
            "because of the interrupt virtio0-rx",
        ),
        (seen([gap(200, 312)], [event(300, 9)]), "stalled.ring", "did not poll for 312 µs at 0.200 s; at 10 Mpps"),
        (seen([gap(200, 312)], totals={}), "stalled.ring", "did not poll for 312 µs at 0.200 s; at 10 Mpps"),
        (
            seen([gap(200, 312)], totals={"switches core 3": 0, "steal ms core 3": 40}),
            "stolen.ring",
            "the hypervisor took 40 ms of it in total",
        ),
        (
            seen([gap(200, 312)], [event(200, 100)], totals={"switches core 3": 1}),
            "own.ring",
            "although no other thread had the core",
        ),
        (
            seen([gap(200, 312)], [event(200, 312, core=1)], totals={"switches core 3": 0}),
            "own.ring",
            "although no other thread had the core",
        ),
        (
            seen([gap(200, 312)], [event(300, 312)], totals={"switches core 3": 1}),
            "own.ring",
            "although no other thread had the core",
        ),
        (
            seen([gap(200, 312)], [event(200, 312)], ring_frames=0, work=()),
            "taken.device",
            "1,072 packets lost meanwhile",
        ),
    ],
)
def a_stall_has_the_owner_that_evidence_gives_it_and_no_other(evidence: Evidence, key: str, words: str) -> None:
    made = trial({FULL: 1072}, [loss(200, 1072)], evidence)
    assert keys(made)[1] == key
    assert words in reported(made)
    assert ("kworker" in reported(made)) is (key == "taken.device")


def takes_the_ring_from_the_lab_when_the_device_does_not_report_it() -> None:
    evidence = seen([gap(200, 312)], [event(200, 312)], ring_frames=0)
    made = trial({FULL: 1072}, [loss(200, 1072)], evidence, facts={"lab": {"ring_frames": 1024}})
    assert "a ring of 1,024 descriptors fills in 102 µs" in reported(made)


def what_a_worker_is_offered_is_its_share() -> None:
    # Each worker gets half of 10 Mpps, so its ring lasts twice as long; a stall of 312 µs loses nothing.
    two = (work(packets=5_000_000), work(packets=5_000_000, worker=1))
    made = trial({FULL: 1072}, [loss(200, 1072)], seen([gap(200, 500)], [event(200, 500)], work=two))
    assert (
        "at 5 Mpps a ring of 2,048 descriptors fills in 410 µs; 1,072 packets lost (452 expected with an empty"
        in reported(made)
    )


def a_stall_that_fits_into_the_ring_is_no_cause() -> None:
    made = trial({FULL: 1072}, [loss(200, 1072)], seen([gap(200, 50)], [event(200, 50)]))
    assert keys(made) == ["place", "unexplained"]
    assert "not enough evidence to name a cause" in reported(made)


def a_stall_at_another_time_is_no_cause() -> None:
    made = trial({FULL: 1072}, [loss(700, 1072)], seen([gap(200, 312)], [event(200, 312)]))
    assert keys(made) == ["place", "unexplained"]


def loss_far_longer_than_a_stall_is_not_its() -> None:
    made = trial({FULL: 100_000}, [loss(100, 100_000, ms=800)], seen([gap(200, 312)], [event(200, 312)]))
    assert keys(made) == ["place", "unexplained"]


def several_stalls_may_share_one_loss() -> None:
    evidence = seen([gap(100, 3000), gap(103.2, 1000)], [event(100, 3000), event(103.2, 1000, "sshd")])
    made = trial({FULL: 40_000}, [loss(100, 40_000, ms=5)], evidence)
    causes = {one.values["who"]: one.frames for one in findings(made) if one.topic == "time"}
    assert sum(causes.values()) == 40_000
    assert causes["kworker/3:1"] > causes["sshd"] > 0


@pytest.mark.parametrize("place", ["tx_refused", FULL])
def the_generator_s_own_stalls_are_its_own(place: str) -> None:
    evidence = seen([gap(200, 900, "dl3gen", 0)], [event(200, 900, "stress", 0)])
    text = reported(trial({place: 500}, [loss(200, 500)], evidence))
    assert "Core 0 was taken from dl3gen's worker 0 for 900 µs at 0.200 s by stress; 500 packets " in text
    assert "isolate core 0" in text


def a_refused_frame_is_laid_beside_the_generator_first() -> None:
    stalls = [gap(200, 900), gap(200, 900, "dl3gen", 0)]
    events = [event(200, 900), event(200, 900, "stress", 0)]
    refused = trial({"tx_refused": 500}, [loss(200, 500)], seen(stalls, events))
    full = trial({FULL: 500}, [loss(200, 500)], seen(stalls, events))
    assert "stress" in reported(refused)
    assert "stress" not in reported(full)


def a_generator_that_stood_still_may_have_polled_later() -> None:
    made = trial({"tx_refused": 500}, [loss(200, 500)], seen([gap(200, 900, "dl3gen", 0)]))
    assert "dl3gen's worker 0 on core 0 stalled for 900 µs at 0.200 s" in reported(made)
    assert "dl3gen 的工作线程 0 停顿" in "".join(explain(made, ZH))


def reports_why_a_generator_fell_behind() -> None:
    evidence = seen([gap(200, 9000, "dl3gen", 0)], [event(200, 9000, "stress", 0)])
    invalid = ("late: the generator skipped 90,000 frames (0.90%) that were due",)
    made = trial({}, (), evidence, invalid=invalid, is_behind=True)
    assert reported(made) == (
        "This trial is INVALID and says nothing about the device; generator late: "
        "the generator did not send 90,000 frames (0.90%) that were due.\n"
        "Core 0 was taken from dl3gen's worker 0 for 9,000 µs at 0.000 s by stress; the generator could not "
        "maintain its rate: isolate core 0 (isolcpus, or move stress away), which belongs to the generator."
    )


def has_no_data_on_a_device_that_reports_none() -> None:
    evidence = Evidence(missing=("frequency of the cores: this kernel has no cpufreq for them",))
    once = trial({"unknown": 500}, [loss(200, 500)], evidence)
    always = trial({"unknown": 5000}, [loss(0, 5000, ms=1000)], evidence)
    assert keys(once) == ["place", "silent", "missing"]
    assert keys(always) == ["place", "silent.steady", "missing"]
    assert "lost evenly over 100% of the time" in reported(always)
    assert reported(once).endswith("Missing evidence: frequency of the cores: this kernel has no cpufreq for them.")


def a_reset_on_purpose_is_no_fault() -> None:
    text = "dl3gen stalled more often than it records: stalls before 5000000210000 ns are missing"
    made = trial({"unknown": 5000, "corrupted": 7}, [loss(0, 5007, ms=3)], Evidence(missing=(text,)), test="reset")
    assert keys(made) == ["reset", "place", "missing"]
    assert reported(made).startswith(
        "5,000 packets, 99.9% of those lost, while the device was out of service because of the deliberate reset: the "
        "length of this outage is what the test measures."
    )
    only = trial({"dut rx ring full": 5000}, [loss(0, 5000)], Evidence(missing=(text,)), test="reset")
    assert keys(only) == ["reset"]
    assert "中断时长正是此项测试的测量对象" in explain(only, ZH)[0]


def reports_from_the_start_of_the_trial_since_when_stalls_are_known() -> None:
    text = "dl3gen stalled more often than it records: stalls before 5000210000000 ns are missing"
    made = trial({"unknown": 500}, [loss(300, 500)], Evidence(missing=(text,)))
    assert reported(made).endswith("than it records: stalls of the first 0.210 s are missing.")
    assert "最初 0.210 s 内的停顿缺失" in explain(made, ZH)[-1]
    assert "5000210000000 ns" in reported(trial({"unknown": 500}, (), Evidence(missing=(text,))))


def names_no_cause_without_times() -> None:
    assert keys(trial({FULL: 500})) == ["place", "no_timeline"]


def verdicts_need_no_times() -> None:
    made = trial({"no_route": 100, "ttl_expired": 7}, [loss(200, 107)], seen([gap(200, 312)], [event(200, 312)]))
    assert reported(made) == (
        "100 packets, 93.5% of those lost: no route to the destination (no_route): run 'dl3 show route ADDRESS' for a "
        "destination of the streams, and add the missing route.\n"
        "7 packets, 6.5% of those lost: TTL or hop limit expired (ttl_expired): send packets with a higher TTL."
    )


def has_words_for_each_verdict_of_the_schema() -> None:
    schema = tomllib.loads((TOP / "schema" / "verdicts.toml").read_text(encoding="utf-8"))
    verdicts = {row["name"] for row in schema["verdict"]} - {"forward", "tx_refused"}
    assert verdicts <= PLACES.keys(), f"add to PLACES in dl3/report/explain/verdicts.py: {verdicts - PLACES.keys()}"


@pytest.mark.parametrize("place", [*PLACES, FULL, "rx_missed", "tx_refused", "unknown"])
def names_each_place_in_both_languages(place: str) -> None:
    made = trial({place: 10}, [loss(200, 10)], seen())
    assert places_of(made) == {place: 10}
    english, chinese = explain(made, EN)[0], explain(made, ZH)[0]
    assert english.startswith("10 packets, 100.0% of those lost: ")
    assert place == "unknown" or not english.endswith(f"lost: {place}.")
    assert re.search("[\u4e00-\u9fff]", chinese.partition("：")[2])
    assert "advice" not in english + chinese


def without_loss_reports_what_limits_next() -> None:
    assert reported(trial({}, (), seen(gaps=[gap(200, 150)]))) == (
        "None of 10,000,000 packets were lost at 10 Mpps.\n"
        "The longest stall of dl3d's worker 0 on core 3 was 150 µs; a ring of 2,048 descriptors overflows in such a stall from "
        "13.65 Mpps on: this is the next limit, at 13.65 Mpps; isolate core 3 or deepen the ring.\n"
        "dl3d's worker 0 on core 3 was 69% loaded: 180 cycles per packet (lookup 62, send 40, rx 30, rewrite 28, "
        "parse 20) in bursts of 20.0, at 2.60 GHz; it is fully loaded at about 14.44 Mpps, or later if larger bursts make packets "
        "cheaper."
    )


def a_worker_limits_where_stalls_are_short() -> None:
    made = trial({}, (), seen(gaps=[gap(200, 30)]))
    assert keys(made) == ["headroom.none_lost", "headroom.worker", "headroom.stall"]
    assert "this is the next limit, at 14.44 Mpps; the step 'lookup' costs most" in reported(made)


def headroom_is_that_of_the_fullest_worker() -> None:
    workers = (work(packets=2_000_000), work(packets=8_000_000, worker=1))
    assert "dl3d's worker 1 on core 4 was 55% loaded" in reported(trial({}, (), seen(work=workers)))


def reports_no_headroom_of_a_device_without_data() -> None:
    assert keys(trial({})) == ["headroom.unknown"]
    assert keys(trial({}, (), Evidence())) == ["headroom.unknown"]
    assert keys(trial({}, (), seen(gaps=[gap(200, 0)]))) == ["headroom.none_lost", "headroom.worker"]
    assert keys(trial({}, invalid=("late: the generator sent nothing",))) == ["invalid"]


def is_plain_for_programs() -> None:
    found = [plain(finding, EN) for finding in findings(taken())]
    assert [one["topic"] for one in found] == ["place", "time"]
    assert found[1]["frames"] == 1072
    assert found[1]["values"]["who"] == "kworker/3:1"  # type: ignore[index]
    assert found[1]["text"] == explain(taken(), EN)[1]
