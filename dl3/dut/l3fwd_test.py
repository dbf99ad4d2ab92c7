"""The command line of l3fwd."""

from pathlib import Path

from dl3.dut.l3fwd import L3fwd
from dl3.lab.endpoint import Endpoint
from dl3.lab.links import Links


def gives_l3fwd_the_same_routes(tmp_path: Path) -> None:
    endpoint = Endpoint(Links(tmp_path, 10), cores=(1,), burst=32, memory_mib=256)
    command = L3fwd(Path("l3fwd")).command(endpoint)
    assert (tmp_path / "rules4").read_text(encoding="ascii") == "R198.18.0.0/16 0\nR198.19.0.0/16 1\n"
    assert command[command.index("--lcores") + 1] == "0@1"
    assert "--eth-dest=1,02:00:00:00:00:12" in command
