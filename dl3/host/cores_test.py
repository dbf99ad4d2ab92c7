"""Which processors there are."""

import os

import pytest

from dl3.host.cores import listed, may_use, usable


@pytest.mark.parametrize(
    ("cores", "text"),
    [((), ""), ((0,), "0"), ((0, 1), "0-1"), ((0, 2, 4, 6), "0,2,4,6"), ((9, 0, 1, 2, 8), "0-2,8-9")],
)
def lists_them_as_the_kernel_does(cores: tuple[int, ...], text: str) -> None:
    assert listed(cores) == text


def goes_to_any_that_is_there_and_comes_back() -> None:
    before = os.sched_getaffinity(0)
    aside = min(before)
    try:
        if others := before - {aside}:
            os.sched_setaffinity(0, others)
        left = usable()
        assert may_use(aside)
        assert not may_use(1023)
        assert usable() == left
    finally:
        os.sched_setaffinity(0, before)
