"""Flows in random order: how often each occurs, and whose order is broken, taken from the frames themselves."""

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from harness.answers import THERE, Bench, flood
from scapy.utils import RawPcapReader

FRAMES, FLOWS, SOURCE_PORT = 20_050, 6, 34
WAYS: dict[str, dict[str, Any]] = {
    "uniform": {"distribution": "uniform"},
    "zipf": {"distribution": "zipf", "exponent": 1.2, "seed": 9},
}


def _flows(path: Path) -> list[int]:
    """The flow of each frame, in sending order."""
    return [int(struct.unpack_from(">H", frame, SOURCE_PORT)[0]) - 1024 for frame, _ in RawPcapReader(str(path))]


def _sent(folder: Path, way: str, **keys: Any) -> tuple[list[int], int]:
    """The flows of all frames, and how many frames were reported as reordered."""
    ports = {"first": 1024, "count": FLOWS}
    with Bench(folder, [f"{THERE} swap_every=100 swap_by=1 dump={FRAMES}"]) as bench:
        reported, truth = bench.run_one(flood(frames=FRAMES, src_port=ports, **(WAYS[way] | keys)))
        assert (reported.received, reported.lost, truth.swapped) == (FRAMES, 0, FRAMES // 100)
        assert reported.reordered_per == "flow"
        return _flows(bench.dumped()), reported.reordered


@pytest.mark.parametrize("way", WAYS)
def a_frame_is_reordered_when_the_later_one_before_it_is_of_its_flow(tmp_path: Path, way: str) -> None:
    flows, reordered = _sent(tmp_path, way)
    wanted = sum(flows[held] == flows[held + 1] for held in range(99, FRAMES - 1, 100))
    assert 0 < wanted < FRAMES // 100
    assert reordered == wanted


def each_flow_comes_as_often_as_its_distribution_specifies(tmp_path: Path) -> None:
    shares = {"uniform": [1.0] * FLOWS, "zipf": [(flow + 1) ** -1.2 for flow in range(FLOWS)]}
    for way, weights in shares.items():
        counts = Counter(_sent(tmp_path, way)[0])
        for flow, weight in enumerate(weights):
            wanted = FRAMES * weight / sum(weights)
            assert abs(counts[flow] - wanted) < 8 * wanted**0.5


@pytest.mark.long
def a_seed_repeats_a_run_to_the_frame(tmp_path: Path) -> None:
    first, again, other = (_sent(tmp_path, "zipf", seed=seed)[0] for seed in (1, 1, 2))
    assert first == again != other
