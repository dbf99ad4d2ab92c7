"""Where frames were lost: one finding per location, the largest first. Pure."""

from collections.abc import Iterator

from dl3.model.trial import Trial
from dl3.report.explain.finding import Finding, Value
from dl3.report.explain.verdicts import ADVICE_OF
from dl3.report.places import RESET, places_of

# Locations where frames are lost because a program polled too late or too slowly, with that program.
WAITING = {
    "dut rx ring full": "dl3d",
    "rx_missed": "dl3d",
    "rx_no_mbuf": "dl3d",
    "tx_refused": "dl3gen",
    "unknown": "dl3d",
}


def place_findings(trial: Trial) -> Iterator[Finding]:
    """One finding per location."""
    lost = trial.account.lost
    for place, frames in sorted(places_of(trial).items(), key=lambda one: -one[1]):
        values: dict[str, Value] = {"frames": frames, "share": frames / lost if lost else 0.0, "place": place}
        yield Finding("place", "reset" if place == RESET else "place", values, frames, ADVICE_OF.get(place, ""))


def waited_for(trial: Trial, program: str) -> int:
    """How many frames were lost because a program did not poll in time."""
    return sum(frames for place, frames in places_of(trial).items() if WAITING.get(place) == program)


def waiting(trial: Trial) -> tuple[int, str]:
    """How many frames were lost for lack of polling, and the program responsible for most of them."""
    found = {place: frames for place, frames in places_of(trial).items() if place in WAITING}
    most = max(found, key=lambda place: found[place], default="unknown")
    return sum(found.values()), WAITING[most]
