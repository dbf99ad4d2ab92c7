"""Kernel parameters that nearly have a name that the kernel knows."""

from collections.abc import Iterator
from difflib import get_close_matches

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity

KNOWN = (
    *("isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "hugepages", "hugepagesz", "default_hugepagesz", "nosmt"),
    *(
        "intel_iommu",
        "amd_iommu",
        "iommu",
        "intel_pstate",
        "amd_pstate",
        "intel_idle.max_cstate",
        "processor.max_cstate",
    ),
    *("nosoftlockup", "nmi_watchdog", "nowatchdog", "mce", "skew_tick", "tsc", "mitigations", "rcu_nocb_poll"),
    *("transparent_hugepage", "numa_balancing", "audit", "selinux", "pcie_aspm", "idle"),
)
LEAST_ALIKE = 0.86


def meant(key: str, is_unknown: bool) -> str | None:
    """The parameter that was meant. The kernel reads '-' as '_'; it does distinguish capitals."""
    plain = key.replace("-", "_")
    if plain in KNOWN:
        return None
    if plain.lower() in KNOWN:
        return plain.lower()
    near = get_close_matches(plain.lower(), KNOWN, 1, LEAST_ALIKE) if is_unknown else []
    return near[0] if near else None


def check(facts: Facts) -> Iterator[Finding]:
    """Words of the running kernel and of the files of the bootloader."""
    unknown = {word.partition("=")[0] for word in facts.kernel.unknown_words}
    places = [("the kernel's command line", facts.kernel.words)]
    places += [(source.path, source.words) for source in facts.boot.sources]
    for place, words in places:
        for word in dict.fromkeys(words):
            key, _, value = word.partition("=")
            right = meant(key, key in unknown)
            if right:
                yield Finding(
                    check="misspelt_words",
                    severity=Severity.BLOCKER,
                    what=f"{place} has '{word}', which the kernel ignores",
                    why=f"names of kernel parameters are case sensitive and exact: '{key}' is not '{right}', so nothing is set",
                    source="white paper §3.2.2 (prints isolCPUs=); Linux, admin-guide/kernel-parameters",
                    remedy=f"write '{right}{'=' if value else ''}{value}', or remove it and use 'dl3 host plan'",
                )
