"""A fully loaded worker is named with its capacity, and with no more of the loss than that explains."""

from typing import Any

import pytest

from dl3.model.evidence import Work
from dl3.model.trial import Trial
from dl3.report.explain import explain, findings
from dl3.report.explain.fake import event, gap, loss, seen, trial, work
from dl3.report.texts import words_in
from dl3.report.words import Language

EN, ZH = words_in(Language.EN), words_in(Language.ZH)
FULL = "dut rx ring full"
BIG: Any = {"cycles": 1181, "empty": 0.999}  # most polls are before and after the trial: a full burst takes 29 us


def reported(made: Trial) -> str:
    return "\n".join(explain(made, EN))


def keys(made: Trial) -> list[str]:
    return [finding.key for finding in findings(made)]


def overrun(lost: int, *works: Work) -> Trial:
    """1,024 bytes at 2.787 Mpps for 265 ms: 738,555 frames."""
    return trial({FULL: lost}, [loss(0, lost, ms=265)], seen(work=works), pps=2_787_000, ms=265)


def a_full_worker_is_recognised_by_its_cycles() -> None:
    evidence = seen(work=(work(cycles=270, empty=0.001, packets=9_630_000),))
    made = trial({FULL: 370_000}, [loss(0, 370_000, ms=1000)], evidence)
    assert keys(made) == ["place", "full", "overrun"]
    assert (
        "dl3d's worker 0 on core 3 was fully loaded: at 270 cycles per packet (lookup 93, send 60, rx 45, rewrite 42, "
        "parse 30) and 2.60 GHz it can forward 9.63 Mpps; its offered load was 10 Mpps, and packet processing took 100% "
        "of its time"
    ) in reported(made)


def a_worker_is_full_by_its_price_whatever_it_did_before_and_after() -> None:
    made = overrun(155_270, work(packets=583_285, **BIG))
    assert reported(made) == (
        "155,270 packets, 100.0% of those lost: device's receive ring full.\n"
        "dl3d's worker 0 on core 3 was fully loaded: at 1,181 cycles per packet (lookup 407, send 262, rx 197, rewrite "
        "184, parse 131) and 2.60 GHz it can forward 2.202 Mpps; its offered load was 2.787 Mpps, and packet processing "
        "took 100% of its time: give the port more queues and workers, or remove the most expensive step.\n"
        "155,270 packets were lost outside of stalls, while a worker was fully loaded."
    )
    assert "\n".join(explain(made, ZH)) == (
        "155,270 个包，占丢包总数的 100.0%：被测设备接收环满。\n"
        "核 3 上 dl3d 的工作线程 0 已满负荷：每个包耗费 1,181 个周期（lookup 407, send 262, rx 197, rewrite 184, "
        "parse 131），主频 2.60 GHz 时最多转发 2.202 Mpps；其负载为 2.787 Mpps，包处理占用其 100% 的时间。"
        "建议：为端口增加队列和工作线程，或去掉开销最大的步骤。\n"
        "155,270 个包丢失于停顿之外，当时有工作线程已满负荷。"
    )


def a_full_worker_is_not_to_blame_for_more_than_it_could_not_do() -> None:
    made = overrun(400_000, work(packets=338_555, **BIG))
    _, full, over, rest = findings(made)
    assert (full.key, over.key, rest.key) == ("full", "overrun", "unexplained.full")
    assert over.frames == pytest.approx(738_555 - 0.95 * 265e-3 * 2.6e9 / 1181, abs=2)
    assert over.frames + rest.frames == 400_000
    assert f"{rest.frames:,} packets were lost outside of any known stall, more than a fully loaded worker" in reported(
        made
    )
    assert f"{rest.frames:,} 个包丢失于任何已知停顿之外，且数量超出工作线程" in "\n".join(explain(made, ZH))


def a_full_worker_is_not_to_blame_for_what_the_generator_refused() -> None:
    places = {FULL: 100_000, "tx_refused": 55_270}
    evidence = seen(work=(work(packets=583_285, **BIG),))
    made = trial(places, [loss(0, 155_270, ms=265)], evidence, pps=2_787_000, ms=265)
    assert [(one.key, one.frames) for one in findings(made)[2:]] == [
        ("full", 0),
        ("overrun", 100_000),
        ("unexplained.full", 55_270),
    ]


def a_full_worker_may_stall_as_well() -> None:
    # It ran at capacity for 200 of 265 ms; frames that arrived during its stalls belong to the stalls.
    stalled = [gap(100, 65_000)]
    made = trial(
        {FULL: 298_000},
        [loss(0, 100_000, ms=100), loss(100, 150_000, ms=65), loss(165, 48_000, ms=100)],
        seen(stalled, [event(100, 65_000)], work=(work(packets=440_555, **BIG),)),
        pps=2_787_000,
        ms=265,
    )
    found = {one.key: one for one in findings(made)}
    assert found["taken.ring"].frames == 198_000
    assert found["overrun"].frames == 100_000
    assert found["full"].values["busy"] == 1.0


def a_worker_beside_a_full_one_is_not_accused() -> None:
    # Both were offered the same; the losses of the first count as offered to both.
    made = overrun(
        155_000, work(packets=214_000, cycles=3_215, empty=0.9), work(packets=369_000, cycles=1_400, worker=1)
    )
    assert [one.values["worker"] for one in findings(made) if one.key == "full"] == [0]


@pytest.mark.parametrize(("cycles", "empty"), [(200, 0.001), (200, 0.9), (255, 0.3)])
def a_worker_with_time_left_is_not_called_full(cycles: float, empty: float) -> None:
    evidence = seen(work=(work(cycles, empty),))
    made = trial({FULL: 370_000}, [loss(0, 370_000, ms=1000)], evidence)
    assert keys(made) == ["place", "unexplained.steady"]
