"""Tests of tools/check_modules on small invented source trees."""

import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).with_name("check_modules")

ROWS = [
    ("a_room_may_look_down", "src/datapath/parse.c", '#include "fib/fib_fast.h"\n', None),
    ("a_room_may_look_at_itself", "src/fib/rib.c", '#include "fib/rib.h"\n', None),
    ("a_room_may_not_look_up", "src/fib/rib.c", '\n#include "datapath/datapath.h"\n', "src/fib/rib.c:2: module 'fib'"),
    ("a_room_may_not_look_sideways", "src/fib/rib.c", '#include "tap/tap.h"\n', "looks sideways at 'tap'"),
    ("a_main_may_look_at_all", "src/dl3d.c", '#include "api/api.h"\n', None),
    ("a_private_header_is_private", "src/datapath/parse.c", '#include "fib/rib.h"\n', "fib/rib.h is private"),
    ("an_open_room_shows_its_nouns", "src/datapath/parse.c", '#include "wire/addr.h"\n', None),
    ("ethdev_belongs_to_port", "src/datapath/send.c", "#include <rte_ethdev.h>\n", "only port and onecore"),
    ("port_may_use_ethdev", "src/port/port.c", "#include <rte_ethdev.h>\n", None),
    ("load_never_sees_fib", "src/gen/pace.c", '#include "fib/fib.h"\n', "may never use 'fib'"),
    ("an_unknown_room_is_named", "src/attic/a.c", '#include "base/bits.h"\n', "'attic' is not in the table"),
    ("an_include_is_written_from_src", "src/fib/rib.c", '#include "rib.h"\n', "is not written from src/"),
    ("python_may_look_down", "dl3/bench/pairs.py", "from dl3.model.rate import Rate\n", None),
    ("python_may_not_look_up", "dl3/model/rate.py", "import dl3.cli.main\n", "looks up at 'cli'"),
    ("python_may_not_look_sideways", "dl3/record/file.py", "from dl3 import host\n", "looks sideways at 'host'"),
    ("constants_of_the_package_are_free", "dl3/model/rate.py", "from dl3 import VERSION\n", None),
    ("python_imports_are_written_in_full", "dl3/record/file.py", "from . import host\n", "relative import"),
]


@pytest.mark.parametrize(("path", "text", "wanted"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def only_lower_rooms_are_used(tmp_path: Path, path: str, text: str, wanted: str | None) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    run = subprocess.run([TOOL, tmp_path], capture_output=True, text=True)
    assert run.stderr == ""
    assert run.returncode == (1 if wanted else 0), run.stdout
    assert (wanted or "") in run.stdout
