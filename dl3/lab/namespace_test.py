"""Namespaces are removed with their lab, even if it was only partly created."""

from collections.abc import Sequence

import pytest

from dl3.lab import command, namespace
from dl3.lab.namespace import NAMESPACES, Lab


@pytest.mark.parametrize("is_made", [False, True])
def an_interrupt_while_one_is_made_leaves_none(monkeypatch: pytest.MonkeyPatch, is_made: bool) -> None:
    def run(words: Sequence[str], *rest: float) -> str:
        if words[2] != "add":
            return command.run(words, *rest)
        if is_made:
            command.run(words, *rest)
        raise KeyboardInterrupt

    monkeypatch.setattr(namespace, "run", run)
    lab = Lab()
    with pytest.raises(KeyboardInterrupt), lab:
        lab.namespace("it")
    assert not (NAMESPACES / f"{lab.tag}-it").exists()
