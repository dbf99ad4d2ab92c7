"""Folders that are safe for plugins."""

from pathlib import Path

import pytest

from dl3.host.private import is_safe, private_folder, safe_parent
from dl3.model.fault import Fault


def takes_the_first_folder_that_not_everybody_may_write() -> None:
    with private_folder() as top:
        opened, closed, below = top / "opened", top / "closed", top / "opened" / "below"
        for folder in (opened, closed, below):
            folder.mkdir()
        opened.chmod(0o1777)
        assert not is_safe(opened)
        assert not is_safe(below)
        assert is_safe(closed)
        assert safe_parent([top / "missing", opened, below, closed]) == closed
        with pytest.raises(Fault, match="DPDK loads no plugin from such a folder: set XDG_RUNTIME_DIR"):
            safe_parent([opened])
        with pytest.raises(Fault, match="and notes would be lost: set XDG_RUNTIME_DIR"):
            safe_parent([opened], "notes would be lost")


def vanishes_with_what_is_in_it() -> None:
    with private_folder() as folder:
        (folder / "file").write_text("x")
    assert not Path(folder).exists()
