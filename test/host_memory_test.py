"""The memory that dl3 host plans is what dl3d needs: the same computation, compared with the running program."""

from typing import Any

import pytest
from harness.answers import CORES
from harness.wired import DL3D

from dl3.host.tuning.memory import LENT, Load, needed_mib, object_bytes, pool_mbufs
from dl3.lab.forwarder import Forwarder

SMALL_PAGE_BYTES = 4096


@pytest.mark.parametrize(
    ("n_ports", "descriptors", "linux"), [(1, 2048, None), (2, 2048, None), (3, 512, None), (2, 2048, {})]
)
def plans_as_much_memory_as_dl3d(n_ports: int, descriptors: int, linux: dict[str, Any] | None) -> None:
    ports = "\n".join(
        f"  - {{name: p{n}, device: net_null{n}, rx_descriptors: {descriptors}, tx_descriptors: {descriptors}}}"
        for n in range(n_ports)
    )
    text = f'ports:\n{ports}\nworkers: [{{core: {CORES[0]}}}]\nmemory: {{hugepages: never}}\ncontrol: {{socket: "@SOCKET@"}}\n'
    load, n_lent = Load(n_ports=n_ports, n_workers=1), 0 if linux is None else LENT
    with Forwarder(DL3D, text, linux=linux) as dl3d:
        dl3d.wait_ready()
        found = dl3d.call("status")["memory"]
    assert found["mbufs"] == pool_mbufs(load, load, n_lent, descriptors)
    assert found["mbuf_bytes"] == object_bytes()
    planned = needed_mib({0: load}, n_lent, descriptors, SMALL_PAGE_BYTES)
    assert found["planned_mib"] == planned[0]
