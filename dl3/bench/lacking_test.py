"""Findings in records."""

from dl3.bench.lacking import findings_in, lacking_facts
from dl3.host.fixture import Machine


def records_findings_worst_first_and_no_notes() -> None:
    made = Machine(governor="powersave")
    made.words("isolCPUs=2-3")
    made.texts["/sys/kernel/mm/transparent_hugepage/enabled"] = "[always] madvise never\n"
    found = findings_in(made.tree())
    severities = [one["severity"] for one in found]
    assert found[0]["check"] == "misspelt_words"
    assert {"blocker", "speed"} <= set(severities)
    assert severities == sorted(severities, key=("blocker", "loss", "speed").index)
    assert "transparent_pages" not in {one["check"] for one in found}
    assert all(set(one) == {"check", "severity", "what"} for one in found)


def this_machine_has_a_list() -> None:
    assert isinstance(lacking_facts()["findings"], list)
