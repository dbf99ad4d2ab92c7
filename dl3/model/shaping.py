"""The result of a shaping test: how well a device keeps the rates of subscribers, each of which is offered more."""

from typing import Literal

from dl3.model.noun import Noun
from dl3.model.trial import Spread


class ShapedClass(Noun):
    """One class of the traffic of every subscriber, by its DSCP."""

    name: Literal["strict", "rest"]
    dscp: int
    share: float  # offered, as a fraction of the subscriber's rate
    delay: Spread  # from when a frame was due until it came back, of those that came back


class ShapedWindow(Noun):
    """Rates of all subscribers over all windows of one length, as fractions of the rates they were given."""

    seconds: float
    low: float
    high: float


class Shaping(Noun):
    """One device with one number of subscribers. Errors are relative; rates are at layer 2, including the FCS."""

    kind: Literal["shaping"] = "shaping"
    at: str
    campaign: str
    dut: str
    wire: str
    frame: str
    subscribers: int
    rates_bps: tuple[float, ...]  # equal parts of the subscribers have these
    overload: float  # offered, as a multiple of each rate
    seconds: float  # of the part of the trial that was evaluated
    n_invalid: int  # INVALID trials before this one
    queue: str  # what the device queues with
    error_mean: float  # of the subscribers' rates
    error_low: float
    error_high: float
    within: float  # fraction of the subscribers whose rate is within 1 %
    silent: int  # subscribers of which fewer than two frames came
    jain: float  # fairness of the rates, each as a fraction of the rate it was given (Jain)
    burst_bytes: int  # the largest excess over the rate, in any interval, of any subscriber
    burst_at_us: float  # when it ended, from the start of the trial on
    windows: tuple[ShapedWindow, ...]
    classes: tuple[ShapedClass, ...]
    facts: dict[str, object]

    @property
    def question(self) -> tuple[object, ...]:
        """What has one result; a later one replaces it."""
        return self.campaign, self.dut, self.wire, self.frame, self.subscribers, self.rates_bps, self.overload
