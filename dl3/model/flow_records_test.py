"""Records of a file, made from text, and read again."""

import socket
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dl3.model.fault import UsageFault
from dl3.model.flow_file import FIXED_END, FlowFile, FlowWriter, read_flow_file
from dl3.model.flow_records import RecordMaker, SavedFlow, saved_flows
from dl3.model.flow_text import FlowKey, FlowSettings, flow_text
from dl3.model.flow_text_test import keys, settings
from dl3.model.white_paper import white_paper_flows

TIMEOUTS_S = (300, 30)


def _made(*lines: str) -> FlowFile:
    maker = RecordMaker(TIMEOUTS_S)
    for line in lines:
        maker.add(line.split())
    return FlowFile(maker.take(), maker.actions(), 0)


@given(st.lists(st.tuples(keys(), settings()), max_size=5))
def a_file_has_what_the_lines_say(wanted: list[tuple[FlowKey, FlowSettings]]) -> None:
    wanted = [(key, one) for key, one in wanted if key.protocol or any(key.src) or any(key.dst)]
    file = _made(*(flow_text(key, one) for key, one in wanted))
    assert saved_flows(file, 0, 10) == [
        SavedFlow(
            key=key,
            action=one.action,
            vrf=one.vrf,
            timeout=TIMEOUTS_S.index(one.idle_s) + 1 if one.idle_s else 0,
            ends_s=one.ends_s or None,
            idle_for_s=None if one.ends_s else 0,
            packets=0,
            bytes=0,
        )
        for key, one in wanted
    ]


def actions_and_vrfs_are_there_once() -> None:
    file = _made(*(f"10.0.0.{n} 10.1.0.1 udp 1 2 vrf {vrf} drop" for n in range(9) for vrf in ("red", "blue")))
    assert file.flows["vrf"].tolist() == [1, 2] * 9
    assert file.actions[["do", "subscriber", "dev"]].tolist() == [(2, 0, b""), (0x80, 1, b"red"), (0x80, 2, b"blue")]


def a_fixed_end_is_in_ms() -> None:
    flow = _made("10.0.0.1 10.1.0.1 udp 1 2 drop ends 7").flows[0]
    assert (flow["kind"], flow["time_ms"]) == (FIXED_END, 7000)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("10.0.0.1 10.1.0.1 udp 1 2 drop idle 31", r"'idle 31' is none of the timeouts \(300, 30\)"),
        ("0.0.0.0 0.0.0.0 0 drop", "zeros only"),
        (":: :: 0 drop", "extension header"),
    ],
)
def a_line_that_does_not_fit_into_the_file_is_refused(line: str, words: str) -> None:
    with pytest.raises(UsageFault, match=words):
        _made(line)


def flows_of_the_white_paper_differ_in_their_destinations(tmp_path: Path) -> None:
    with FlowWriter(tmp_path / "flows") as writer:
        for some in white_paper_flows(70_000):
            writer.add(some)
        writer.finish(_made("10.0.0.1 10.1.0.1 udp 1 2 drop", "10.0.0.1 10.1.0.1 udp 1 2 route").actions, 0)
    flows = read_flow_file(tmp_path / "flows").flows
    assert len(flows) == len(np.unique(flows["dst4"])) == 140_000
    for n in (0, 1, 515, 139_999):
        number = n // 2
        first = 201 if n % 2 else 101
        dst = f"{first}.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        assert bytes(flows[n]["dst"][:4]) == socket.inet_aton(dst)
        assert bytes(flows[n]["src"][:4]) == socket.inet_aton("100.10.0.1")
        assert flows[n][["src_port", "dst_port", "proto", "action"]].item() == (11, 101, 17, n % 2)
