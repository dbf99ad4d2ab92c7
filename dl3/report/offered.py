"""Two figures that hang on what was offered: whether that may be all that differs."""

from dl3.report.measures import HIGHEST_RATE, USUAL_SPREAD, Figure, half_of


def is_alike(one: Figure, other: Figure) -> bool:
    """Whether the ranges of both have something in common."""
    return one.low <= other.high and other.low <= one.high


def are_apart(one: Figure, other: Figure) -> bool:
    """Whether their loads differ by more than a load does by itself."""
    low, high = sorted((one.load_pps, other.load_pps))
    return low * (1 + USUAL_SPREAD) < high


def explained(less: Figure, load_pps: float) -> float:
    """The loss ratio, at most, of a device that is offered more and forwards what it did before."""
    ratio = 1 - less.load_pps * (1 - less.value) / load_pps
    return ratio + half_of(ratio, less.unit)


def is_loss_of_load(less: Figure, more: Figure) -> bool:
    """Of loss ratios: more was lost of more, and of a little more no more than it explains."""
    return more.value > less.value and (are_apart(less, more) or more.low <= explained(less, more.load_pps))


def is_rate_of_load(less: Figure, more: Figure) -> bool:
    """Of forwarding rates: of more no larger share came back; the highest of more loads is never less for them."""
    if not are_apart(less, more) or (more.name == HIGHEST_RATE and more.value <= less.value):
        return False
    return more.value / more.load_pps <= less.value / less.load_pps


def is_of_loads(one: Figure, other: Figure) -> bool:
    """Whether what was offered may be why two figures differ, or why losses do not; more lost of less never is."""
    if not (one.load_pps > 0 and other.load_pps > 0):
        return False
    is_loss = one.unit == "ratio"
    if is_alike(one, other):
        return is_loss and are_apart(one, other)
    less, more = sorted((one, other), key=lambda figure: figure.load_pps)
    return is_loss_of_load(less, more) if is_loss else is_rate_of_load(less, more)
