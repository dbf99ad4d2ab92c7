"""Recovery and reset tests."""

import pytest

from dl3.search.recovery import recovery_s
from dl3.search.reset import is_back, trial_that_ends_well
from dl3.search.throughput import Undecided


def counts_from_the_fall_of_the_load() -> None:
    assert recovery_s(60.25, 60.0, 62.0) == pytest.approx(0.25)
    assert recovery_s(59.9, 60.0, 62.0) == 0


def there_is_no_recovery_without_loss() -> None:
    with pytest.raises(Undecided, match="nothing was lost in the overload"):
        recovery_s(None, 60.0, 62.0)


def a_device_that_still_loses_has_not_recovered() -> None:
    with pytest.raises(Undecided, match=r"2\.0 s after the overload frames were still lost"):
        recovery_s(61.95, 60.0, 62.0)


def waits_ever_longer_for_a_device_to_come_back() -> None:
    tried: list[float] = []

    def measure(seconds: float) -> float:
        tried.append(seconds)
        return seconds

    assert trial_that_ends_well(measure, lambda seconds: seconds > 5, 1.0, 60.0) == 8.0
    assert tried == [1.0, 2.0, 4.0, 8.0]
    with pytest.raises(Undecided, match="did not forward again within 3 s"):
        trial_that_ends_well(measure, lambda _: False, 1.0, 3.0)


def detects_whether_the_device_came_back() -> None:
    assert is_back(None, 2.0)
    assert is_back(1.5, 2.0)
    assert not is_back(1.99, 2.0)
