"""The kernel: its release, how it was built, its command line, and what it logged about that."""

import re

from dl3.host.tree import Tree, word
from dl3.model.noun import Noun

OPTIONS = ("CONFIG_NO_HZ_FULL", "CONFIG_RCU_NOCB_CPU", "CONFIG_CPU_ISOLATION", "CONFIG_VFIO_PCI", "CONFIG_VFIO_NOIOMMU")
LOGGED = re.compile(
    r"Unknown kernel command line|Housekeeping:|Offload RCU callbacks|NO_HZ: Full dynticks|DMAR: IOMMU enabled|"
    r"AMD-Vi: Interrupt remapping enabled|unsupported"
)
UNKNOWN = re.compile(r'Unknown kernel command line parameters "([^"]*)"')
WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
MODES = re.compile(r"\[(\w+)\]")


class Kernel(Noun):
    """The running kernel. `options` are those of OPTIONS; None if its configuration is not found."""

    release: str
    options: dict[str, str] | None
    words: tuple[str, ...]
    unknown_words: tuple[str, ...] = ()  # that the kernel logged as unknown
    log: tuple[str, ...] = ()
    lockdown: str | None = None

    def values(self, key: str) -> tuple[str, ...]:
        """The values of a parameter, in order."""
        return tuple(one.partition("=")[2] for one in self.words if one.partition("=")[0] == key)

    def value(self, key: str) -> str | None:
        """The last value of a parameter."""
        found = self.values(key)
        return found[-1] if found else None

    def lacks(self, option: str) -> bool:
        """Whether it was built without an option. False if that is not known."""
        return self.options is not None and self.options.get(option) not in ("y", "m")


def words_of(line: str) -> tuple[str, ...]:
    """The parameters of a command line; quotes hold spaces together. What follows '--' is for init."""
    found = []
    for match in WORD.finditer(line):
        if match[0] == "--":
            break
        found.append(match[0].replace('"', ""))
    return tuple(found)


def without_init(line: str) -> str:
    """A command line without the arguments of init, which are nobody's business."""
    return " ".join(f'"{one}"' if " " in one else one for one in words_of(line)) + "\n"


def only_logged(text: str) -> str:
    """The lines of the kernel's log that are used, which may be far apart."""
    return "".join(f"{line}\n" for line in text.splitlines() if LOGGED.search(line))


def only_options(text: str) -> str:
    """The options of the kernel's configuration that are used."""
    return "".join(f"{line}\n" for line in text.splitlines() if line.partition("=")[0] in OPTIONS)


def options_of(tree: Tree, release: str) -> dict[str, str] | None:
    """The options of OPTIONS that are set."""
    for path in ("/proc/config.gz", f"/boot/config-{release}", f"/usr/lib/modules/{release}/config"):
        text = tree.text(path, only_options)
        if text is not None:
            return dict(sorted((key, value) for key, _, value in (line.partition("=") for line in text.splitlines())))
    return None


def read_kernel(tree: Tree) -> Kernel:
    """The running kernel."""
    release = word(tree, "/proc/sys/kernel/osrelease") or "unknown"
    log = tuple((tree.output("kernel-log", only_logged) or "").splitlines())
    unknown = [one for line in log for match in UNKNOWN.finditer(line) for one in words_of(match[1])]
    lockdown = MODES.search(tree.text("/sys/kernel/security/lockdown") or "")
    return Kernel(
        release=release,
        options=options_of(tree, release),
        words=words_of(tree.text("/proc/cmdline", without_init) or ""),
        unknown_words=tuple(unknown),
        log=log,
        lockdown=lockdown[1] if lockdown else None,
    )
