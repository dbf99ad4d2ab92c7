"""Each kernel parameter is set once."""

from collections.abc import Iterator

from dl3.host.facts.boot import KERNEL_FILE, Loader
from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.tuning.names import GRUB, PARAMETERS


def check(facts: Facts) -> Iterator[Finding]:
    """Parameters that 'dl3 host' sets, in files of others and on the command line."""
    for key in PARAMETERS:
        places = [
            (source.path, word)
            for source in facts.boot.sources
            for word in source.words
            if word.partition("=")[0] == key and source.path != GRUB
        ]
        if facts.boot.loader == Loader.SYSTEMD_BOOT:  # its one file has the words of dl3, too
            places = [place for place in places if place[0] != KERNEL_FILE]
        ours = f"{key}=" in (facts.system.own_file(GRUB) or "")
        if len(places) + ours > 1:
            said = ", ".join(f"{word} in {path}" for path, word in places)
            yield Finding(
                check="duplicates",
                severity=Severity.BLOCKER,
                what=f"{key}= is set more than once: {said}{f', and in {GRUB}' if ours else ''}",
                why="the kernel takes the last one, or joins them, depending on the parameter",
                source="Linux, admin-guide/kernel-parameters; grubby#23",
                remedy="keep one of them: remove the lines of other files, then run 'dl3 host plan'",
            )
