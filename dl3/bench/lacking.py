"""What this machine lacks, as records carry it: the findings of 'dl3 host', without notes."""

from dl3.host.facts.read import read
from dl3.host.finding import findings_of
from dl3.host.tree import FolderTree, Tree

FINDINGS = "findings"  # key of the facts


def findings_in(tree: Tree) -> list[dict[str, str]]:
    """The findings of a machine in short: remedies are for 'dl3 host', which knows the machine as it is then."""
    found = [one for one in findings_of(read(tree)) if one.is_fault]
    return [{"check": one.check, "severity": str(one.severity), "what": one.what} for one in found]


def lacking_facts() -> dict[str, object]:
    """This machine's findings as a part of the facts."""
    return {FINDINGS: findings_in(FolderTree())}
