"""The command that restarts dl3d under traffic, with real programs; the figures are not checked."""

import json
import subprocess

from harness.wired import TOP

FEW = ("--routes", "3000", "--routes6", "300", "--pps", "2000", "--restarts", "1")


def tells_when_workers_have_all_routes_and_what_was_lost() -> None:
    """Two starts of dl3d, and datagrams until it forwards again."""
    command = [str(TOP / "bin" / "dl3"), "bench", "restart", *FEW, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (restart,) = json.loads(done.stdout)
    assert restart["routes4"] >= 3000
    assert restart["routes6"] >= 300
    assert 0 < restart["dump_s"] < restart["ready_s"]
    assert 0 < restart["received"] <= restart["sent"]
    assert sum(restart["lost"].values()) >= restart["sent"] - restart["received"]
    assert "no_route" not in restart["lost"]
