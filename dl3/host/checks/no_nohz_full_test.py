"""Kernels without CONFIG_NO_HZ_FULL."""

from dl3.host.checks.no_nohz_full import check
from dl3.host.fixture import RELEASE, Machine, found


def names_a_parameter_that_the_kernel_was_not_built_for() -> None:
    made = Machine()
    made.isolate("2-3")
    assert found(check, made) == []
    made.texts[f"/boot/config-{RELEASE}"] = "CONFIG_CPU_ISOLATION=y\n# CONFIG_NO_HZ_FULL is not set\n"
    del made.texts["/sys/devices/system/cpu/nohz_full"]
    assert found(check, made) == [
        ("blocker", "nohz_full=2-3 has no effect: the kernel stops the tick on no CPU"),
    ]


def names_a_list_that_the_kernel_did_not_take() -> None:
    made = Machine()
    made.isolate("2-3")
    made.texts["/sys/devices/system/cpu/nohz_full"] = "3\n"
    assert found(check, made)[0][1] == "nohz_full=2-3 has no effect: the kernel stops the tick on CPU 3"


def names_the_kernel_if_nothing_was_asked_for() -> None:
    made = Machine()
    made.texts[f"/boot/config-{RELEASE}"] = "CONFIG_CPU_ISOLATION=y\n"
    assert found(check, made) == [("speed", "this kernel was built without CONFIG_NO_HZ_FULL")]
