"""What counts as a change between two campaigns."""

from collections.abc import Sequence

import pytest
from harness.campaigns import every_test
from harness.records import Maker, campaign, spread

from dl3.model.results import BackToBack, Forwarding, FrameLoss, LossPoint, Recovery
from dl3.model.trial import Throughput, Trial
from dl3.report.compare import Comparison, compare
from dl3.report.comparison_table import change_row
from dl3.report.measures import figures
from dl3.report.results import Record, gather
from dl3.report.texts import words_in
from dl3.report.units import NOTHING
from dl3.report.words import Language


def _compared(old: Sequence[Record], new: Sequence[Record]) -> Comparison:
    return compare(gather(old), gather(new), "old", "new")


def _verdict(old: Record, new: Record) -> str:
    judged = [change.verdict for change in _compared([old], [new]).changes if change.is_judged]
    assert len(judged) == 1
    return judged[0]


def _result(pps: float, **changes: object) -> Throughput:
    return Maker().result("64", pps, **changes)


def _burst() -> BackToBack:
    return next(one for one in every_test(Maker(), []) if isinstance(one, BackToBack))


def _latency(p50_ns: float) -> Trial:
    made = Maker().trial("64", 1e6, test="latency", load=0.5)
    return made.model_copy(update={"latency": spread(1000, p50_ns)})


@pytest.mark.parametrize(("pps", "wanted"), [(10.29e6, "same"), (10.4e6, "better"), (9.72e6, "same"), (9.6e6, "worse")])
def takes_three_percent_for_noise_where_no_more_is_known(pps: float, wanted: str) -> None:
    assert _verdict(_result(10e6), _result(pps)) == wanted


def accepts_intervals_that_do_not_overlap() -> None:
    old = _result(10e6, interval_pps=(9.95e6, 10.05e6), resolution=0.001)
    assert _verdict(old, _result(9.9e6, interval_pps=(9.85e6, 9.92e6), resolution=0.001)) == "worse"
    assert _verdict(old, _result(9.9e6, interval_pps=(9.85e6, 9.96e6), resolution=0.001)) == "same"


def never_takes_what_lies_within_the_resolution_for_a_change() -> None:
    old = _result(10e6, interval_pps=(9.999e6, 10.001e6), resolution=0.02)
    assert _verdict(old, _result(10.1e6, interval_pps=(10.09e6, 10.11e6), resolution=0.02)) == "same"


def is_unclear_where_the_generator_or_noise_was_the_limit() -> None:
    assert _verdict(_result(10e6), _result(9e6, limited_by="generator")) == "unclear"
    assert _verdict(_result(10e6, noise=("time was stolen",)), _result(9e6)) == "unclear"


def carries_at_least_to_every_figure() -> None:
    words = words_in(Language.EN)

    def row(old: Record, new: Record) -> list[str]:
        change = _compared([old], [new]).changes[0]
        return [str(cell) for cell in change_row(change, words).cells[5:11] if cell not in ("Mpps", "typical spread")]

    bound, found = _result(9e6, limited_by="generator"), _result(10e6)
    assert row(bound, found) == ["≥ 9.000", "10.000", "≤ +11.11", "unclear"]
    assert row(found, bound) == ["10.000", "≥ 9.000", "≥ -10.00", "unclear"]
    assert row(bound, bound) == ["≥ 9.000", "≥ 9.000", NOTHING, "unchanged; both are lower bounds"]
    lossy = _result(9e6, limited_by="generator", goal_loss_ratio=0.005, conditional_pps=9e6)
    burst = BackToBack.model_validate({**_burst().model_dump(), "is_at_least": True})
    assert [one.is_at_least for one in figures(gather([lossy, burst]))] == [True] * 4
    assert not any(one.is_at_least for one in figures(gather([found, _burst()])))


def takes_no_less_than_a_microsecond_of_latency_for_a_change() -> None:
    assert _verdict(_latency(5_000), _latency(5_900)) == "same"
    assert _verdict(_latency(5_000), _latency(7_000)) == "worse"
    assert _verdict(_latency(7_000), _latency(5_000)) == "better"


def _recovery(*seconds: float) -> Recovery:
    found = next(one for one in every_test(Maker(), []) if isinstance(one, Recovery))
    return found.model_copy(update={"seconds": seconds})


def takes_no_less_than_a_tenth_of_a_millisecond_of_recovery_for_a_change() -> None:
    assert _verdict(_recovery(0.0), _recovery(0.00008)) == "same"
    assert _verdict(_recovery(0.0, 0.0), _recovery(0.00006, 0.00008)) == "same"
    assert _verdict(_recovery(0.0), _recovery(0.001)) == "worse"


def _losses(*ratios: float) -> FrameLoss:
    """At 100, 90, 80 % and so on of 10 Mpps."""
    found = next(one for one in every_test(Maker(), []) if isinstance(one, FrameLoss))
    points = [LossPoint(share=1 - i / 10, pps=10e6 - i * 1e6, loss_ratio=ratio) for i, ratio in enumerate(ratios)]
    return found.model_copy(update={"points": tuple(points)})


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ((0.0, 0.0), (1e-7, 0.0, 0.0), {"same"}),
        ((0.2, 0.0, 0.0), (0.2, 1e-7, 0.0, 0.0), {"same"}),
        ((0.2, 0.0, 0.0), (0.2, 0.1, 0.01, 0.0, 0.0), {"same", "worse"}),
        ((0.2, 0.0, 0.0), (0.25, 0.0, 0.0), {"same", "worse"}),
    ],
)
def takes_neither_one_step_nor_a_frame_for_a_change(
    old: Sequence[float], new: Sequence[float], wanted: set[str]
) -> None:
    assert {change.verdict for change in _compared([_losses(*old)], [_losses(*new)]).changes} == wanted


def _points(*points: tuple[float, float]) -> tuple[LossPoint, ...]:
    """Offered Mpps with the loss ratio."""
    most = max(mpps for mpps, _ in points)
    return tuple(LossPoint(share=mpps / most, pps=mpps * 1e6, loss_ratio=ratio) for mpps, ratio in points)


def _lost(*points: tuple[float, float]) -> FrameLoss:
    return _losses().model_copy(update={"points": _points(*points)})


def _forwarded(*points: tuple[float, float]) -> Forwarding:
    found = next(one for one in every_test(Maker(), []) if isinstance(one, Forwarding))
    rates = [mpps * 1e6 * (1 - ratio) for mpps, ratio in points]  # from the highest load down
    reported = {"at_most_offered_pps": rates[0], "most_pps": max(rates)}
    return found.model_copy(update={"points": _points(*points), **reported})


def _verdicts(old: Record, new: Record) -> list[str]:
    words = words_in(Language.EN)
    return [str(change_row(change, words).cells[10]) for change in _compared([old], [new]).changes]


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ((19.97, 0.918), (39.07, 0.952), "unclear; at 19.970 and 39.070 Mpps"),  # and more frames came back
        ((39.07, 0.952), (19.97, 0.918), "unclear; at 39.070 and 19.970 Mpps"),
        ((20, 0.9), (14, 0.1), "unclear; at 20.000 and 14.000 Mpps"),
        ((40, 0.5), (20, 0.5), "unclear; at 40.000 and 20.000 Mpps"),  # and half as many frames came back
        ((20, 0.05), (20.4, 0.0686), "unclear; at 20.000 and 20.400 Mpps"),  # as many frames came back
        ((20, 0.05), (20.4, 0.2), "worse"),
        ((20.4, 0.2), (20, 0.05), "better"),
        ((20, 0.05), (20.4, 0.0502), "unchanged"),
        ((20, 0.1), (14, 0.5), "worse"),  # more loss at a lower load
        ((14, 0.5), (20, 0.1), "better"),
        ((20, 0.0), (20, 0.02), "worse"),
    ],
)
def distinguishes_losses_of_different_loads_from_a_change(
    old: tuple[float, float], new: tuple[float, float], wanted: str
) -> None:
    assert _verdicts(_lost(old), _lost(new))[0] == wanted


def is_not_worse_where_nothing_is_lost_of_what_a_slower_tester_offers() -> None:
    fast, slow = ((28.0, 0.0), (25.2, 0.0)), ((20.0, 0.0), (18.0, 0.0))
    assert _verdicts(_lost(*fast), _lost(*slow)) == [
        "unclear; at 28.000 and 20.000 Mpps",
        "unclear; both are lower bounds",
    ]
    assert _verdicts(_forwarded(*fast), _forwarded(*slow)) == ["unclear; both are lower bounds"] * 2
    assert not _compared([_lost(*fast)], [_lost(*slow)]).is_worse
    first = next(change for change in _compared([_lost((20, 0.9))], [_lost((14, 0.1))]).changes)
    assert first.ratio is None


def a_few_frames_do_not_make_what_the_tester_offers_a_limit_of_the_device() -> None:
    assert _verdicts(_forwarded((28.0, 0.0)), _forwarded((20.0, 1e-6))) == ["unclear; both are lower bounds"] * 2


def is_worse_where_a_device_loses_what_it_forwarded() -> None:
    whole = _lost((28.0, 0.0), (25.2, 0.0))
    assert _verdicts(whole, _lost((28.0, 0.2), (25.2, 0.1), (22.4, 0.0))) == ["worse", "worse"]
    assert _verdicts(_forwarded((28.0, 0.0)), _forwarded((28.0, 0.5), (14.0, 0.01))) == ["worse", "worse"]
    assert _verdicts(_forwarded((28.0, 0.5)), _forwarded((20.0, 0.6))) == [
        "worse",
        "worse",
    ]  # more loss at a lower load


def distinguishes_rates_of_different_loads_from_a_change() -> None:
    unclear = "unclear; at 39.000 and 20.000 Mpps"
    assert _verdicts(_forwarded((39, 0.952)), _forwarded((20, 0.918))) == [unclear, unclear]  # rates rise with the load
    sags = _verdicts(_forwarded((20, 0.05)), _forwarded((28, 0.5), (19.6, 0.25)))
    assert sags == ["unclear; at 20.000 and 28.000 Mpps", "worse"]  # the highest rate is over all loads
    assert _verdicts(_forwarded((28, 0.5)), _forwarded((20, 0.3))) == ["unchanged", "unchanged"]


def finds_every_kind_of_result_the_same_as_itself() -> None:
    records = every_test(Maker(), campaign(Maker()))
    found = _compared(records, records)
    assert {change.verdict for change in found.changes} == {"same"}
    assert {change.figure.test for change in found.changes} == {
        "throughput",
        "latency",
        "frame loss",
        "back-to-back",
        "recovery",
        "reset",
        "forwarding",
    }
    assert not found.is_worse


def counts_what_is_missing_as_worse_and_what_is_new_as_neither() -> None:
    both = [_result(10e6), Maker().result("512", 9e6)]
    assert _compared(both, both[:1]).is_worse
    assert not _compared(both[:1], both).is_worse
