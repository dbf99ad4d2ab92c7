"""Detection of processors."""

import os

import pytest

from dl3.host.cores import listed, may_use, read_list, usable


@pytest.mark.parametrize(
    ("cores", "text"),
    [((), ""), ((0,), "0"), ((0, 1), "0-1"), ((0, 2, 4, 6), "0,2,4,6"), ((9, 0, 1, 2, 8), "0-2,8-9")],
)
def lists_them_as_the_kernel_does(cores: tuple[int, ...], text: str) -> None:
    assert listed(cores) == text
    assert read_list(f"{text}\n") == tuple(sorted(cores))


def recognises_programs_that_were_suspended_on_purpose() -> None:
    """As with isolated processors, the kernel excludes them unless they are requested."""
    before = os.sched_getaffinity(0)
    aside = min(before)
    try:
        if others := before - {aside}:
            os.sched_setaffinity(0, others)
        left = os.sched_getaffinity(0)
        assert may_use(aside)
        assert not may_use(1023)
        assert set(usable()) >= before
        assert os.sched_getaffinity(0) == left
    finally:
        os.sched_setaffinity(0, before)
