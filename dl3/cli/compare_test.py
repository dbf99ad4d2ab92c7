"""How devices are typed."""

import pytest

from dl3.cli.compare import spec_of
from dl3.model.fault import UsageFault


def reads_a_device_with_its_options() -> None:
    spec = spec_of("testpmd:mode=mac,wire=veth")
    assert (spec.name, spec.kind, spec.options) == (
        "testpmd:mode=mac,wire=veth",
        "testpmd",
        {"mode": "mac", "wire": "veth"},
    )
    with pytest.raises(UsageFault, match="'mac' is none"):
        spec_of("testpmd:mac")
