"""A device between the ports of a running dl3gen."""

from pathlib import Path

import pytest

from dl3.dut.external import KIND
from dl3.model.campaign import DutSpec, Setup, Traffic
from dl3.model.fault import Fault


@pytest.mark.parametrize(
    ("option", "start"),
    [("generator", "cannot connect to dl3gen at .*'dl3gen FILE'"), ("dut", "cannot connect to dl3d")],
)
def reports_in_a_campaign_s_words_that_the_program_is_not_running(option: str, start: str, tmp_path: Path) -> None:
    options: dict[str, object] = {"generator": str(tmp_path / "generator"), option: str(tmp_path / "none")}
    setup = Setup(dut=DutSpec(name="box", kind="external", options=options))
    traffic = Traffic(streams=({"from": "left", "to": "right"},))
    with (
        pytest.raises(Fault, match=f"^{start}.* or specify its socket with the option '{option}' of the device$"),
        KIND.opened(setup, traffic, tmp_path),
    ):
        pass
