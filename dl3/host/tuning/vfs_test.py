"""Plans of VFs: what is refused, one sentence each."""

import json
from pathlib import Path

import pytest

from dl3.host.facts.read import read
from dl3.host.fixture import Machine
from dl3.host.tuning.plan import Tuning, load
from dl3.host.tuning.step import VfSettings, VfStep
from dl3.host.tuning.vfs import plan_vfs
from dl3.model.fault import UsageFault

PF = "0000:03:00.0"
AT = f"/sys/bus/pci/devices/{PF}"


def _plan(made: Machine, n: int = 2, pf: str = PF, settings: VfSettings | None = None) -> Tuning:
    return plan_vfs(read(made.tree()), pf, (settings or VfSettings(),) * n, binds=False)


def _refused(made: Machine, n: int = 2, pf: str = PF, settings: VfSettings | None = None) -> str:
    with pytest.raises(UsageFault) as caught:
        _plan(made, n, pf, settings)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def _with_vf(driver: str = "ixgbevf", is_up: bool = False) -> Machine:
    made = Machine()
    made.texts[f"{AT}/sriov_numvfs"] = "1\n"
    made.driver = driver
    made.nic("0000:03:10.0", 0, "vf0", physfn=PF)
    made.texts["/sys/class/net/vf0/operstate"] = "up\n" if is_up else "down\n"
    return made


def plans_one_step_and_no_cores() -> None:
    tuning = _plan(Machine())
    (step,) = tuning.steps
    assert isinstance(step, VfStep)
    assert (step.before, step.after, step.autoprobe, tuning.cores, tuning.parameters) == (0, 2, True, (), ())
    assert tuning.unconfirmed == {0}
    assert Tuning.model_validate_json(tuning.model_dump_json()) == tuning


def refuses_a_card_without_sr_iov_and_more_vfs_than_it_has() -> None:
    made = Machine()
    assert _refused(made, 64) == f"{PF} has at most 63 VFs: 64 were requested"
    made.texts[f"{AT}/sriov_totalvfs"] = "0\n"
    assert _refused(made).startswith(f"{PF} has no SR-IOV: ")
    del made.texts[f"{AT}/sriov_totalvfs"]
    assert _refused(made).startswith(f"{PF} has no SR-IOV: ")


def refuses_what_is_no_pf() -> None:
    assert "0000:09:00.0 is no network card of this machine: its cards are 0000:03:00.0" in _refused(
        Machine(), pf="0000:09:00.0"
    )
    assert _refused(_with_vf(), pf="0000:03:10.0") == f"0000:03:10.0 is a VF itself: its card is {PF}"


def refuses_the_management_card() -> None:
    made = Machine()
    made.default_route(4, "eth0")
    assert f"making VFs of {PF} is refused: this machine is managed through it" in _refused(made)


def refuses_vfs_in_use_and_says_by_what() -> None:
    assert "the VF 0000:03:10.0 of 0000:03:00.0 is in use: its interface vf0 is up" in _refused(_with_vf(is_up=True))
    assert "it has the driver vfio-pci, so that a guest or another program may use it" in _refused(_with_vf("vfio-pci"))
    made = _with_vf()
    for path in [one for one in made.texts if one.startswith("/sys/class/net/vf0/")]:
        del made.texts[path]
    del made.links["/sys/class/net/vf0/device"]
    assert "its interface is in another network namespace" in _refused(made)


def refuses_to_change_the_number_of_vfs_that_nobody_uses() -> None:
    assert f"{PF} has 1 VF already, and a new number removes them" in _refused(_with_vf())


def settings_need_an_interface() -> None:
    made = Machine()
    del made.links["/sys/class/net/eth0/device"]
    assert "has no interface of Linux, by which its VFs are configured" in _refused(made, settings=VfSettings(vlan=7))
    assert _plan(made).steps


@pytest.mark.parametrize(
    "change",
    [
        {"address": "../x"},
        {"after": 3},
        {"after": 0},
        {"before": 4},
        {"driver": "evil"},
        {"settings": [{"mac": "02:00:00:00:00:01; reboot"}, {}]},
        {"settings": [{"mac": "01:00:00:00:00:01"}, {}]},
        {"settings": [{"vlan": 4095}, {}]},
        {"settings": [{"command": "x"}, {}]},
    ],
)
def refuses_a_plan_that_was_edited(change: dict[str, object], tmp_path: Path) -> None:
    text = json.loads(_plan(Machine()).model_dump_json())
    text["steps"][0] |= change
    (tmp_path / "plan.json").write_text(json.dumps(text))
    with pytest.raises(UsageFault, match="is no plan of 'dl3 host plan'"):
        load(tmp_path / "plan.json")
