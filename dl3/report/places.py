"""Where frames were lost, over all valid trials."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dl3.model.trial import Trial

RESET = "reset"
AWAY = ("unknown", "dut rx ring full", "rx_missed", "port_down")  # where frames are lost while a device is reset


@dataclass(frozen=True)
class Place:
    """One location."""

    name: str
    n_lost: int
    n_trials: int  # in which frames were lost there
    lowest_pps: float  # the lowest load at which it happened


def places_of(trial: Trial) -> dict[str, int]:
    """Lost frames by location; the remainder is 'unknown', or 'reset' if a device was reset."""
    found = {name: n for name, n in trial.account.lost_by_place.items() if n > 0}
    rest = trial.account.lost - sum(found.values())
    if rest > 0:
        found["unknown"] = found.get("unknown", 0) + rest
    return with_reset(found) if trial.test == "reset" else found


def with_reset(places: dict[str, int]) -> dict[str, int]:
    """Merges the loss during a deliberate reset into one location, since that loss is what such a trial measures."""
    away = sum(places.get(name, 0) for name in AWAY)
    others = {name: n for name, n in places.items() if name not in AWAY}
    return {RESET: away, **others} if away else others


def losses(trials: Iterable[Trial]) -> tuple[Place, ...]:
    """The locations of loss, the largest first."""
    found: dict[str, Place] = {}
    for trial in trials:
        for name, n in places_of(trial).items():
            old = found.get(name, Place(name, 0, 0, math.inf))
            lowest = min(old.lowest_pps, trial.offered_pps)
            found[name] = Place(name, old.n_lost + n, old.n_trials + 1, lowest)
    return tuple(sorted(found.values(), key=lambda place: (-place.n_lost, place.name)))
