"""NetworkManager and the interfaces of the forwarder."""

from dl3.host.checks.network_manager import check
from dl3.host.fixture import Machine, found


def names_interfaces_of_the_forwarder_and_not_the_one_of_management() -> None:
    made = Machine(nics=("0000:03:00.0", "0000:04:00.0"))
    made.default_route(4, "eth0")
    assert found(check, made) == []
    made.service("NetworkManager")
    assert found(check, made) == [("speed", "NetworkManager manages eth1")]
    made.texts["/etc/NetworkManager/conf.d/90-dl3.conf"] = "[keyfile]\nunmanaged-devices+=interface-name:eth1\n"
    assert found(check, made) == []
