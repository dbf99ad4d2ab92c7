"""One consistent set of kernel parameters, and the step that brings it to the bootloader."""

import re
from collections.abc import Iterator

from dl3.host.cores import listed
from dl3.host.facts.boot import KERNEL_FILE, Loader
from dl3.host.facts.kernel import words_of
from dl3.host.facts.read import Facts
from dl3.host.tuning.cores import housekeeping
from dl3.host.tuning.names import GRUB
from dl3.host.tuning.step import HEAD, WORD, FileStep

BOOTLOADERS_OWN = ("BOOT_IMAGE", "initrd")
PAGES_PER_GIB = 1024
WHY = "cores of workers without other threads, timer ticks, RCU callbacks and interrupts"
SOURCE = "white paper §3.2.2; Linux, admin-guide/kernel-parameters, timers/no_hz"


def isolation(facts: Facts, isolated: frozenset[int]) -> Iterator[str]:
    """The same CPUs for all that the kernel can do."""
    cpus = listed(isolated)
    yield f"isolcpus=managed_irq,domain,{cpus}"
    if not facts.kernel.lacks("CONFIG_NO_HZ_FULL"):
        yield f"nohz_full={cpus}"
    if not facts.kernel.lacks("CONFIG_RCU_NOCB_CPU"):
        yield f"rcu_nocbs={cpus}"
    yield f"irqaffinity={listed(housekeeping(facts, isolated))}"


def words_in(text: str) -> tuple[str, ...]:
    """The words of a file that a tuning wrote for GRUB."""
    line = text.removeprefix(HEAD).strip()
    found = words_of(line.partition('"')[2].rpartition('"')[0].removeprefix("$GRUB_CMDLINE_LINUX"))
    return tuple(one for one in found if re.fullmatch(WORD, one))


def iommu(facts: Facts, binds: bool) -> Iterator[str]:
    """Only where cards are bound and the IOMMU is off, or was until a tuning switched it on."""
    is_intel = "Intel" in facts.cpus.model
    needed = binds and not facts.system.has_iommu and not facts.cpus.is_virtual
    if needed or "iommu=pt" in words_in(facts.system.own_file(GRUB) or ""):
        yield from ["intel_iommu=on"] if is_intel else []
        yield "iommu=pt"


def pages(gib: dict[int, int]) -> Iterator[str]:
    """Pages of 1 GiB on each node; kernels before 5.16 do not know the form with nodes."""
    if gib:
        yield "hugepagesz=1G"
        yield f"hugepages={','.join(f'{node}:{n}' for node, n in sorted(gib.items()))}"


def conflicts(facts: Facts, words: tuple[str, ...]) -> list[str]:
    """Files of others that set the same parameters."""
    keys = {word.partition("=")[0] for word in words}
    found = []
    for source in facts.boot.sources:
        for word in source.words:
            is_ours = source.path == GRUB or (source.path == KERNEL_FILE and word in words)
            if word.partition("=")[0] in keys and not is_ours:
                found.append(f"{word} in {source.path}")
    return found


def grub_text(words: tuple[str, ...]) -> str:
    """A file that GRUB's scripts include after /etc/default/grub."""
    return f'{HEAD}GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {" ".join(words)}"\n'


def systemd_boot_step(facts: Facts, words: tuple[str, ...]) -> FileStep | None:
    """kernel-install takes the whole command line from one file; without it, that of the running kernel."""
    source = next((one for one in facts.boot.sources if one.path == KERNEL_FILE), None)
    running = (word for word in facts.kernel.words if word.partition("=")[0] not in BOOTLOADERS_OWN)
    have = source.words if source else tuple(running)
    missing = [word for word in words if word not in have]
    if not missing and source:
        return None
    before = " ".join(source.words) + "\n" if source else None
    text = " ".join((*have, *missing)) + "\n"
    return FileStep(
        path=KERNEL_FILE, before=before, after=text, then="kernel-install", needs_reboot=True, why=WHY, source=SOURCE
    )


def parameter_steps(facts: Facts, words: tuple[str, ...]) -> tuple[list[FileStep], list[str]]:
    """The step, or sentences on why there is none."""
    by_hand = f"add these words to the kernel's command line by hand: {' '.join(words)}"
    other = conflicts(facts, words)
    if other:
        return [], [
            f"kernel parameters are not planned, because others set them: {', '.join(other)}; remove those first"
        ]
    if facts.boot.loader == Loader.GRUB:
        before, after = facts.system.own_file(GRUB), grub_text(words)
        step = FileStep(
            path=GRUB, before=before, after=after, then="update-grub", needs_reboot=True, why=WHY, source=SOURCE
        )
        return [step] if before != after else [], []
    if facts.boot.loader == Loader.SYSTEMD_BOOT:
        step_or_none = systemd_boot_step(facts, words)
        return [step_or_none] if step_or_none else [], []
    if facts.boot.loader == Loader.GRUBBY:
        return [], [f'{by_hand}; here: grubby --update-kernel=ALL --args="{" ".join(words)}"']
    return [], [f"{by_hand} ({facts.boot.why})"]
