"""All checks together."""

from pathlib import Path

from dl3.host.facts.read import read
from dl3.host.finding import RANKS, Severity, checks, findings_of
from dl3.host.fixture import Machine
from dl3.host.tree import StoredTree

FOLDER = Path(__file__).parent / "checks"


def each_check_is_a_file_with_a_test_beside_it() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert set(checks()) == {name for name in files if not name.endswith("_test")}
    assert {f"{name}_test" for name in checks()} <= files


def each_finding_says_what_and_why_and_where_from_and_what_to_do() -> None:
    made = Machine(n_nodes=2, n_threads=2, governor="powersave", has_iommu=False)
    made.words("isolCPUs=2-3 isolcpus=2-3")
    found = findings_of(read(made.tree()))
    assert [RANKS[one.severity] for one in found] == sorted(RANKS[one.severity] for one in found), "the worst first"
    assert found[0].severity == Severity.BLOCKER
    for one in found:
        assert all((one.what, one.why, one.source, one.remedy)), one
        assert one.check in checks()
        assert not one.what.endswith("."), "it is a part of a sentence"


def a_tree_without_anything_is_checked_too() -> None:
    assert [one.check for one in findings_of(read(StoredTree())) if one.is_fault] == ["no_isolation"]


def a_machine_that_is_prepared_has_only_notes() -> None:
    made = Machine(n_nodes=2, n_threads=2, driver="vfio-pci")
    made.isolate("1-3,9-11")
    for name in ("watchdog", "nmi_watchdog"):
        made.texts[f"/proc/sys/kernel/{name}"] = "0\n"
    for name in ("nr_hugepages", "free_hugepages"):
        made.texts[f"/sys/devices/system/node/node0/hugepages/hugepages-2048kB/{name}"] = "1024\n"
    assert [one for one in findings_of(read(made.tree())) if one.is_fault] == []
