"""An interrupt ends what runs, but not what is held."""

import os
import signal
from collections.abc import Iterator

import pytest

from dl3.host.interrupts import SIGNALS, Held, take


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in SIGNALS]
    take()
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def it_interrupts_at_once(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)


def what_clears_up_is_not_interrupted() -> None:
    done = []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            done.append("cleared up")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["cleared up"]


def it_waits_for_the_end_of_what_is_held() -> None:
    done = []

    def work() -> None:
        with Held():
            with Held():
                os.kill(os.getpid(), signal.SIGTERM)
            done.append("held")
        done.append("after")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["held"]


def an_error_of_what_is_held_is_not_lost() -> None:
    def work() -> None:
        with Held():
            os.kill(os.getpid(), signal.SIGTERM)
            raise ValueError

    with pytest.raises(KeyboardInterrupt) as caught:
        work()
    assert isinstance(caught.value.__context__, ValueError)


def nothing_is_left_of_it() -> None:
    with Held():
        pass
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
