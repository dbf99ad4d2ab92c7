"""IOMMU groups."""

from dl3.host.checks.iommu_groups import check
from dl3.host.fixture import Machine, found


def names_what_shares_the_group_of_a_card() -> None:
    made = Machine()
    assert found(check, made) == []
    made.group("0000:03:00.0", "7")
    made.texts["/sys/kernel/iommu_groups/7/devices/0000:00:1f.0"] = ""
    assert found(check, made) == [("speed", "0000:03:00.0 shares IOMMU group 7 with 0000:00:1f.0")]


def two_cards_for_the_forwarder_may_share_a_group() -> None:
    made = Machine(nics=("0000:03:00.0", "0000:03:00.1"))
    made.group("0000:03:00.0", "7")
    made.group("0000:03:00.1", "7")
    assert found(check, made) == []
