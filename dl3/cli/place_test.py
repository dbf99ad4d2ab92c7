"""Where measurements run, and what is measured there."""

import pytest

from dl3.cli.place import device_of
from dl3.trial.fake import FakeGenerator
from dl3.trial.order import Site


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, "mine"),
        ({"forwarder": {"version": "0.1.0"}}, "mine"),
        ({"forwarder": {"version": "0.1.0", "idle": "sleep"}}, "mine (idle: sleep)"),
    ],
)
def names_the_device_with_what_its_workers_do_without_frames(facts: dict[str, object], words: str) -> None:
    assert device_of(Site(FakeGenerator(), dut_name="mine", facts=facts)) == words
