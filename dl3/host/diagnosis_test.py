"""Evaluation of the kernel's trace ring."""

import pytest

from dl3.host.diagnosis import Diagnosis

SECOND = 10**9


def line(at_s: float, text: str, core: int = 1, task: str = "worker-7") -> str:
    return f"  {task}     [{core:03}] d..2. {at_s:.6f}: {text}"


def switched(at_s: float, before: str, after: str, core: int = 1) -> str:
    old, new = (f"{end}_comm={who.rpartition('-')[0]} {end}_pid={who.rpartition('-')[2]} {end}_prio=120"
                for end, who in (("prev", before), ("next", after)))  # fmt: skip
    return line(at_s, f"sched_switch: {old} prev_state=R ==> {new}", core, before)


def reported(*lines: str, names: dict[int, str] | None = None) -> list[tuple[str, int, float, int, str]]:
    diagnosis = Diagnosis(start_ns=SECOND, workers={1: 7}, names=names or {})
    diagnosis.read(lines, 3 * SECOND)
    return [(event.what, event.at_ns, event.us, event.core, event.who) for event in diagnosis.longest()]


def a_core_is_taken_from_its_worker_and_given_back() -> None:
    found = reported(switched(1.2, "worker-7", "kworker/1:1-25"), switched(1.200312, "kworker/1:1-25", "worker-7"))
    assert found == [("switch", 1_200_312_000, 312.0, 1, "kworker/1:1")]


def two_threads_in_turn_are_two_events() -> None:
    lines = (
        switched(1.1, "worker-7", "a b-3"),
        switched(1.15, "a b-3", "c ==> d-4"),
        switched(1.3, "c ==> d-4", "worker-7"),
    )
    assert [(who, us) for _, _, us, _, who in reported(*lines)] == [("a b", 50_000), ("c ==> d", 150_000)]


def who_was_there_before_and_who_stays_count_from_the_beginning_and_to_the_end() -> None:
    assert reported(switched(1.1, "old-3", "worker-7"), switched(1.9, "worker-7", "new-4")) == [
        ("switch", 1_100_000_000, 100_000.0, 1, "old"),
        ("switch", 3_000_000_000, 1_100_000.0, 1, "new"),
    ]


def nobody_takes_an_idle_core() -> None:
    assert reported(switched(1.1, "worker-7", "swapper/1-0"), switched(1.2, "swapper/1-0", "worker-7")) == []


def a_worker_takes_another_worker_s_core() -> None:
    assert reported(
        switched(1.1, "a-9", "worker-7", core=0), switched(1.2, "worker-7", "a-9", core=0), names={7: "dl3d/worker"}
    ) == [
        ("switch", 1_100_000_000, 100_000.0, 0, "a"),
        ("switch", 1_200_000_000, 100_000.0, 0, "dl3d/worker"),
        ("switch", 3_000_000_000, 1_800_000.0, 0, "a"),
    ]


@pytest.mark.parametrize(
    ("entry", "exit_", "who"),
    [
        ("irq_handler_entry: irq=24 name=virtio0-rx", "irq_handler_exit: irq=24 ret=handled", "virtio0-rx"),
        ("softirq_entry: vec=3 [action=NET_RX]", "softirq_exit: vec=3 [action=NET_RX]", "softirq NET_RX"),
        ("local_timer_entry: vector=236", "local_timer_exit: vector=236", "local timer"),
    ],
)
def interrupts_have_a_name_and_a_length(entry: str, exit_: str, who: str) -> None:
    other = line(1.00001, "softirq_entry: vec=9 [action=RCU]")
    found = reported(line(1.0, entry), other, line(1.00003, exit_), line(1.00004, entry, core=0))
    assert found == [("interrupt", 1_000_030_000, 30.0, 1, who)]


def ticks_of_a_timer_are_too_short_to_be_reported() -> None:
    assert reported(line(1.0, "local_timer_entry: vector=236"), line(1.000004, "local_timer_exit: vector=236")) == []


def page_faults_and_frequencies_are_moments() -> None:
    fault = line(1.5, "page_fault_user: address=0x1 ip=0x2 error_code=0x6")
    assert reported(fault, line(1.6, "cpu_frequency: state=1200000 cpu_id=3", core=0)) == [
        ("page fault", 1_500_000_000, 0.0, 1, "worker"),
        ("frequency", 1_600_000_000, 0.0, 3, "1,200 MHz"),
    ]


def keeps_the_longest_in_the_order_of_time() -> None:
    lines = []
    for i in range(250):
        at_s = 1 + i / 500
        lines += [switched(at_s, "worker-7", "x-3"), switched(at_s + (i + 1) / 1e6, "x-3", "worker-7")]
    found = reported(*lines)
    assert [us for _, _, us, _, _ in found] == list(range(51, 251))


def what_is_no_event_is_left_out() -> None:
    assert (
        reported("# tracer: nop", "", "CPU:1 [LOST 5 EVENTS]", line(1.1, "other: x"), line(1.2, "sched_switch: ?"))
        == []
    )
