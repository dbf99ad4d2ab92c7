"""The IOMMU."""

from dl3.host.checks.iommu import check
from dl3.host.fixture import Machine, found


def is_needed_where_there_is_a_card_for_the_forwarder() -> None:
    made = Machine(has_iommu=False)
    assert found(check, made) == [("blocker", "Linux uses no IOMMU")]
    made.default_route(4, "eth0")
    assert found(check, made) == []
    assert found(check, Machine()) == []


def names_vfio_without_one() -> None:
    made = Machine(has_iommu=False)
    made.texts["/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"] = "Y\n"
    assert [severity for severity, _ in found(check, made)] == ["note"]
