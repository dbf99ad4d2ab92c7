"""Tests of tools/check_sizes on files just inside and just outside each wall."""

import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).with_name("check_sizes")


def _c_function(n_lines: int, parameters: str = "void") -> str:
    return f"int walk({parameters})\n{{\n" + "\tstep();\n" * (n_lines - 3) + "}\n"


def _python_function(n_lines: int) -> str:
    return "def walk():\n" + "    step()\n" * (n_lines - 1)


SIX = "int a, int b, int c, int d, int e, const char *f"
ROWS = [
    ("c_file_inside", "src/fib/rib.c", "\n" * 500, None),
    ("c_file_outside", "src/fib/rib.c", "\n" * 501, "file has 501 lines"),
    ("c_test_is_looser", "src/fib/rib_test.c", "\n" * 501, None),
    ("c_line_inside", "src/fib/rib.c", "\t//" + "x" * 90 + "\n", None),
    ("c_line_outside", "src/fib/rib.c", "\t//" + "x" * 91 + "\n", "line has 101 columns"),
    ("c_function_inside", "src/fib/rib.c", _c_function(70), None),
    ("c_function_outside", "src/fib/rib.c", _c_function(71), "walk has 71 lines"),
    ("inline_function_outside", "src/fib/fib_fast.h", "static inline " + _c_function(71), "walk has 71 lines"),
    ("six_parameters", "src/fib/rib.c", _c_function(4, SIX), None),
    ("seven_parameters", "src/fib/rib.c", _c_function(4, SIX + ", int g"), "walk takes 7 parameters"),
    (
        "a_function_pointer_is_one",
        "src/fib/rib.c",
        _c_function(4, "int a, int (*b)(int, int), int c, int d, int e, int f"),
        None,
    ),
    ("python_file_outside", "dl3/record/file.py", "\n" * 401, "file has 401 lines"),
    ("python_test_is_looser", "dl3/record/file_test.py", "\n" * 401, None),
    ("python_function_inside", "dl3/record/file.py", _python_function(40), None),
    ("python_function_outside", "dl3/record/file.py", _python_function(41), "walk has 41 lines"),
    ("scripts_count", "tools/run", "#!/usr/bin/python3\n" + _python_function(41), "walk has 41 lines"),
    ("other_files_do_not_count", "README.md", "x" * 500 + "\n", None),
]


@pytest.mark.parametrize(("path", "text", "wanted"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def each_wall_stands(tmp_path: Path, path: str, text: str, wanted: str | None) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    run = subprocess.run([TOOL, tmp_path], capture_output=True, text=True)
    assert run.stderr == ""
    assert run.returncode == (1 if wanted else 0), run.stdout
    assert (wanted or "") in run.stdout
