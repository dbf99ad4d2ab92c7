"""Facts of many records become one text each."""

from dl3.report.facts import together
from dl3.report.texts import words_in
from dl3.report.words import Language

EN, ZH = words_in(Language.EN), words_in(Language.ZH)


def reports_what_is_alike_once() -> None:
    assert together(["6.18", "6.18"], EN) == "6.18"


def reports_numbers_that_differ_as_a_range() -> None:
    assert together([512, 1024, 600], EN) == "512 to 1,024"


def reports_texts_that_differ_side_by_side_and_not_without_end() -> None:
    assert together(["a", "b", "a"], EN) == "a | b"
    assert together([f"v{n}" for n in range(9)], EN).endswith("v5 | and 3 more")


def puts_tables_together_key_by_key() -> None:
    assert (
        together([{"late_polls": 0, "flows": 7}, {"late_polls": 3, "flows": 7}], EN) == "late polls: 0 to 3; flows: 7"
    )


def names_in_chinese_what_a_device_is() -> None:
    device = {"name": "dl3d", "configuration": {"page_kib": 2048, "ports": ["a", "b"]}, "net.ipv4.ip_forward": 1}
    assert together([device], ZH) == "名称：dl3d；配置：页大小（KiB）：2,048；端口：a；b；net.ipv4.ip_forward：1"


def names_dpdk_once() -> None:
    assert together([{"dpdk": "DPDK 22.11.11"}], EN) == "DPDK: 22.11.11"


def reports_in_words_which_processors_have_a_cache() -> None:
    caches = {"L3 unified": "32768K for cpus 0-1"}
    assert together([caches], EN) == "L3: 32,768 KiB (CPU 0-1)"
    assert together([caches], ZH) == "三级：32,768 KiB（CPU 0-1）"


def names_what_is_empty() -> None:
    assert together([[]], EN) == "none"
    assert together([""], EN) == "unknown"
    assert together([True, False], EN) == "yes | no"
