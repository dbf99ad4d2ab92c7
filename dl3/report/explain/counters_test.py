"""What the machine counted during a loss."""

from dl3.model.evidence import OF_THE_OTHER
from dl3.report.explain import explain, findings
from dl3.report.explain.fake import loss, seen, trial
from dl3.report.places import RESET
from dl3.report.texts import words_in
from dl3.report.words import Language

TOTALS = {
    "switches core 3": 98.0,
    "interrupts core 3": 464.0,
    "interrupts core 3: Local timer interrupts": 400.0,
    "softirqs core 3": 84.0,
    "steal ms core 3": 40.0,
    "page faults dl3d": 7.0,
    "involuntary switches dl3d core 3": 71.0,
}
HERE = (
    "Over the whole trial, core 3 of dl3d had 98 switches to other threads, 464 interrupts, 84 softirqs and 7 page "
    "faults; the hypervisor took 40 ms."
)
LOST = {"dut rx ring full": 500}


def reported(totals: dict[str, float], language: Language = Language.EN) -> list[str]:
    made = trial(LOST, [loss(200, 500)], seen(totals=totals))
    texts = zip(findings(made), explain(made, words_in(language)), strict=True)
    return [text for finding, text in texts if finding.topic == "counters"]


def reports_what_came_over_each_workers_core() -> None:
    assert reported(TOTALS) == [HERE]
    assert reported(TOTALS, Language.ZH) == [
        "整个试验期间，dl3d 所在的核 3：切换到其他线程 98 次，中断 464 次，软中断 84 次，"
        "被宿主机占用 40 ms；dl3d 缺页 7 次。"
    ]


def reports_the_messages_of_linux_and_of_frequency_where_they_are_known() -> None:
    more = {"netlink messages": 1200.0, "MHz before core 3": 2100.0, "MHz core 3": 3400.0}
    assert reported({**TOTALS, **more}) == [
        f"{HERE[:-1]}, 2,100 MHz before and 3,400 MHz after.",
        "Linux sent 1,200 netlink messages (routes, neighbours, links) to dl3d during the trial.",
    ]


def takes_the_schedulers_count_where_threads_were_not_traced() -> None:
    del (untraced := dict(TOTALS))["switches core 3"]
    assert "71 switches to other threads," in reported(untraced)[0]


def keeps_cores_of_two_machines_apart() -> None:
    other = {f"{name} {OF_THE_OTHER}": 2 * n for name, n in TOTALS.items()}
    here, there = reported({**TOTALS, **other})
    assert here == HERE
    assert "196 switches to other threads, 928 interrupts, 168 softirqs and 14 page faults" in there


def reports_nothing_about_a_reset_on_purpose_and_without_loss() -> None:
    for places, losses in (({RESET: 500}, [loss(200, 500)]), ({}, [])):
        made = trial(places, losses, seen(totals=TOTALS))
        assert "counters" not in [finding.topic for finding in findings(made)]
