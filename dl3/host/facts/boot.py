"""The bootloader, and the files from which it takes the kernel's command line."""

import re
from enum import StrEnum

from dl3.host.facts.kernel import words_of
from dl3.host.tree import Tree
from dl3.model.noun import Noun

GRUB_FILE = "/etc/default/grub"
GRUB_FOLDER = "/etc/default/grub.d"
GRUB_MENUS = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
KERNEL_FILE = "/etc/kernel/cmdline"
LOADERS = ("/boot/loader/loader.conf", "/boot/efi/loader/loader.conf", "/efi/loader/loader.conf")
PROGRAMS = ("/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/")
ASSIGNED = re.compile(r"""^\s*GRUB_CMDLINE_LINUX(?:_DEFAULT)?=(["']?)(.*?)\1\s*$""", re.MULTILINE)


class Loader(StrEnum):
    """Bootloaders, by how a parameter gets to the kernel."""

    GRUB = "GRUB with /etc/default/grub.d"
    GRUBBY = "GRUB with grubby"
    SYSTEMD_BOOT = "systemd-boot"
    UNKNOWN = "unknown"


class Source(Noun):
    """A file with parameters."""

    path: str
    words: tuple[str, ...]


class Boot(Noun):
    """How this machine boots."""

    loader: Loader
    sources: tuple[Source, ...] = ()
    why: str = ""  # if it is unknown


def program(tree: Tree, name: str) -> bool:
    """Whether a program is installed."""
    return any(tree.has(f"{folder}{name}") for folder in PROGRAMS)


def only_assigned(text: str) -> str:
    """The lines of GRUB's file with parameters."""
    return "".join(f"{match[0].strip()}\n" for match in ASSIGNED.finditer(text))


def grub_sources(tree: Tree) -> tuple[Source, ...]:
    """GRUB's files; a variable that includes itself is left out."""
    names = [name for name in tree.names(GRUB_FOLDER) if name.endswith(".cfg")]
    found = []
    for path in (GRUB_FILE, *(f"{GRUB_FOLDER}/{name}" for name in names)):
        text = tree.text(path, only_assigned)
        words = [one for match in ASSIGNED.finditer(text or "") for one in words_of(match[2])]
        if words:
            found.append(Source(path=path, words=tuple(one for one in words if not one.startswith("$"))))
    return tuple(found)


def read_boot(tree: Tree) -> Boot:
    """How this machine boots."""
    if tree.has("/run/ostree-booted"):
        return Boot(
            loader=Loader.UNKNOWN, why="the system is an image of rpm-ostree, which manages the parameters itself"
        )
    if any(tree.has(path) for path in GRUB_MENUS) and tree.has(GRUB_FILE):
        if program(tree, "update-grub"):
            return Boot(loader=Loader.GRUB, sources=grub_sources(tree))
        if program(tree, "grubby"):
            return Boot(loader=Loader.GRUBBY, sources=grub_sources(tree))
    if any(tree.has(path) for path in LOADERS) and program(tree, "kernel-install"):
        text = tree.text(KERNEL_FILE)
        sources = () if text is None else (Source(path=KERNEL_FILE, words=words_of(text)),)
        return Boot(loader=Loader.SYSTEMD_BOOT, sources=sources)
    return Boot(loader=Loader.UNKNOWN, why="neither GRUB nor systemd-boot was found")
