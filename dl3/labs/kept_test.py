"""What a killed command of a lab has left is found and removed."""

import os
import subprocess
from pathlib import Path

import pytest

from dl3.lab.kept import VARIABLE, Place, alone
from dl3.labs.running import kept, settle_killed
from dl3.model.fault import UsageFault


def _place(folder: Path) -> Place:
    return Place(f"test-{os.getpid()}", folder)


def ends_the_processes_of_a_lab_and_no_others(tmp_path: Path) -> None:
    place = _place(tmp_path)
    place.folder.mkdir()
    (place.folder / "x.sock").touch()
    environment = os.environ | {VARIABLE: place.name}
    with (
        subprocess.Popen(["sleep", "600"], env=environment) as ours,
        subprocess.Popen(["sleep", "600"], env=os.environ | {VARIABLE: f"{place.name}-other"}) as other,
    ):
        said: list[str] = []
        settle_killed(place, said.append)
        assert said == [f"removing what a killed command of the lab {place.lab} has left"]
        assert other.poll() is None
        other.kill()
        assert ours.pid not in place.processes()
    assert not place.has_any()
    settle_killed(place, said.append)
    assert len(said) == 1


def refuses_a_second_command(tmp_path: Path) -> None:
    place = _place(tmp_path)
    with alone(place), pytest.raises(UsageFault, match="another command works with the lab"), alone(place):
        pass
    with alone(place):
        pass


def leaves_a_lab_that_is_up(tmp_path: Path) -> None:
    place = _place(tmp_path)
    place.folder.mkdir()
    place.up_file.touch()
    with pytest.raises(UsageFault, match=f"^the lab {place.lab} is up: use "):
        settle_killed(place, print)
    assert place.up_file.exists()


def says_that_a_lab_is_not_up(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match=r"is not up: run 'dl3 lab \S+ up' first$"):
        kept(_place(tmp_path), print)
