"""Two figures that depend on the offered load: whether the load may be the only difference."""

from dl3.report.measures import HIGHEST_RATE, USUAL_SPREAD, Figure, half_of


def is_alike(one: Figure, other: Figure) -> bool:
    """Whether the two ranges overlap."""
    return one.low <= other.high and other.low <= one.high


def are_apart(one: Figure, other: Figure) -> bool:
    """Whether their loads differ by more than the usual spread of a load."""
    low, high = sorted((one.load_pps, other.load_pps))
    return low * (1 + USUAL_SPREAD) < high


def explained(less: Figure, load_pps: float) -> float:
    """The highest loss ratio of a device that is offered more and forwards as much as before."""
    ratio = 1 - less.load_pps * (1 - less.value) / load_pps
    return ratio + half_of(ratio, less.unit)


def is_loss_of_load(less: Figure, more: Figure) -> bool:
    """For loss ratios: the loss grew with the load, and for a small difference no more than the load explains."""
    return more.value > less.value and (are_apart(less, more) or more.low <= explained(less, more.load_pps))


def is_rate_of_load(less: Figure, more: Figure) -> bool:
    """For forwarding rates: no larger share came back at the higher load; a maximum over more loads is never lower."""
    if not are_apart(less, more) or (more.name == HIGHEST_RATE and more.value <= less.value):
        return False
    return more.value / more.load_pps <= less.value / less.load_pps


def is_of_loads(one: Figure, other: Figure) -> bool:
    """Whether the load may explain the difference of two figures, or hide one; more loss at less load never is."""
    if not (one.load_pps > 0 and other.load_pps > 0):
        return False
    is_loss = one.unit == "ratio"
    if is_alike(one, other):
        return is_loss and are_apart(one, other)
    less, more = sorted((one, other), key=lambda figure: figure.load_pps)
    return is_loss_of_load(less, more) if is_loss else is_rate_of_load(less, more)
