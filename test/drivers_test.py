"""The DPDK drivers built into the programs."""

import subprocess
from pathlib import Path

import pytest
from harness.wired import BUILD

FUNCTIONS = {"null": b"eth_null_tx", "memif": b"eth_memif_tx_zc"}


@pytest.mark.parametrize("program", ["dl3d", "dl3gen"])
@pytest.mark.parametrize("name", FUNCTIONS)
def drivers_that_ask_for_each_frame_are_within(program: str, name: str) -> None:
    command = ["pkg-config", "--variable=libdir", "libdpdk"]
    folder = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    has_archive = (folder / f"librte_net_{name}.a").exists()
    assert (FUNCTIONS[name] in (BUILD / "src" / program).read_bytes()) is has_archive
