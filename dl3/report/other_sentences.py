"""The result of a test in one sentence."""

from dl3.model.results import BackToBack, Forwarding, FrameLoss, Recovery, Reset, Versus
from dl3.report.other_tables import mean
from dl3.report.results import Other
from dl3.report.units import loss, number, significant
from dl3.report.words import Words


def milliseconds(seconds: tuple[float, ...]) -> str:
    """The mean of repetitions."""
    found = mean(seconds)
    return significant(None if found is None else found * 1e3)


def loss_sentence(result: FrameLoss, names: dict[str, str], words: Words) -> str:
    """Loss at the highest load, or at the highest with a valid trial."""
    if not result.points:
        return words("says.nothing", **names)
    worst = max(result.points, key=lambda point: point.pps)
    key = "says.valid_loss" if max(result.invalid_shares, default=0.0) > worst.share else "says.frame_loss"
    return words(key, **names, loss=loss(worst.loss_ratio), rate=significant(worst.pps / 1e6))


def other_sentence(result: Other, words: Words) -> str:
    """The result in one sentence."""
    names = {"dut": result.dut, "frame": words.frame(result.frame)}
    if isinstance(result, FrameLoss):
        return loss_sentence(result, names, words)
    if isinstance(result, BackToBack):
        bound = "at_least.words" if result.is_at_least else "exactly.words"
        return words("says.back_to_back", **names, frames=words(bound, value=number(result.frames, 0)))
    if isinstance(result, Recovery):
        bound = "at_most.words" if result.is_at_most else "exactly.words"
        return words("says.recovery", **names, ms=words(bound, value=milliseconds(result.seconds)))
    if isinstance(result, Reset):
        return words("says.reset", **names, what=words(f"reset.{result.what}"), ms=milliseconds(result.seconds))
    if isinstance(result, Forwarding):
        return words("says.forwarding", **names, rate=significant(result.most_pps / 1e6))
    return versus_sentence(result, names, words)


def versus_sentence(result: Versus, names: dict[str, str], words: Words) -> str:
    """Which of the two is faster, if this is established."""
    low, high = result.interval
    key = "says.faster" if low > 1 else "says.slower" if high < 1 else "says.alike"
    ends = {"low": number(low, 3), "high": number(high, 3)}
    return words(key, **names, peer=result.peer, ratio=number(result.ratio, 3), **ends)
