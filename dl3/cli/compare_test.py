"""How devices are given on the command line."""

from typing import Any

import pytest

from dl3.cli.compare import alike, idle_words, spec_of
from dl3.dut.beds import kind_of
from dl3.dut.kind import check_honoured
from dl3.model.campaign import Setup
from dl3.model.fault import UsageFault
from dl3.model.results import Versus


def reads_a_device_with_its_options() -> None:
    spec = spec_of("testpmd:mode=mac,wire=veth")
    assert (spec.name, spec.kind, spec.options) == (
        "testpmd:mode=mac,wire=veth",
        "testpmd",
        {"mode": "mac", "wire": "veth"},
    )
    with pytest.raises(UsageFault, match="invalid option 'mac'"):
        spec_of("testpmd:mac")


@pytest.mark.parametrize(
    ("peer", "slots", "wanted"),
    [("l3fwd", None, 16384), ("linux", None, 2048), ("external", None, 2048), ("l3fwd", 512, 512), ("linux", 512, 512)],
)
def gives_both_devices_as_many_descriptors_as_both_can_be_given(peer: str, slots: int | None, wanted: int) -> None:
    setups = alike([Setup(dut=spec_of(text)) for text in ("dl3d", peer)], slots)
    assert [setup.descriptors for setup in setups] == [wanted, wanted]
    if slots is None:
        for setup in setups:
            check_honoured(setup, kind_of(setup.dut).ability.honours)


def reports_what_workers_do_without_frames_where_one_is_dl3d() -> None:
    head: dict[str, Any] = {"at": "now", "campaign": "now", "frame": "64", "mean_bytes": 64.0, "test": "forwarding"}
    head |= {"ours_pps": (1.0,), "peer_pps": (1.0,), "ratio": 1.0, "interval": (1.0, 1.0)}
    facts: dict[str, object] = {"dut": {"idle": "sleep"}, "peer": {"idle": "poll"}}
    assert idle_words(Versus(dut="dl3d", peer="mine", facts=facts, **head)) == "dl3d: sleep, mine: poll"
    assert idle_words(Versus(dut="l3fwd", peer="ovs", facts={"dut": {}, "peer": {}}, **head)) == ""
