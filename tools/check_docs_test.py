"""Tests of tools/check_docs on a small invented repository."""

import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).with_name("check_docs")
ROWS = [
    ("a_link_to_a_file", "[a](other.md)", None),
    ("a_link_to_a_heading_of_a_file", "[a](other.md#part)", None),
    ("a_link_to_a_heading_here", "[a](#part)", None),
    ("a_link_to_a_host", "[a](https://example.net/x)", None),
    ("a_link_to_nowhere", "text\n[a](gone.md)", "a.md:2: the link to gone.md leads nowhere"),
    ("a_long_line", "x" * 141, "a.md:1: 141 characters"),
    ("a_line_of_140_characters", "中" * 140, None),
    ("a_long_row_of_a_table", "|" + "x" * 200, None),
]


@pytest.mark.parametrize(("text", "fault"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def checks_links_and_lines(tmp_path: Path, text: str, fault: str | None) -> None:
    (tmp_path / "tools").mkdir()
    tool = tmp_path / "tools" / "check_docs"
    tool.write_bytes(TOOL.read_bytes())
    for name, content in (("a.md", text), ("other.md", "")):
        (tmp_path / name).write_text(content + "\n", encoding="utf-8")
    subprocess.run(("git", "init", "-q"), cwd=tmp_path, check=True)
    subprocess.run(("git", "add", "a.md", "other.md"), cwd=tmp_path, check=True)
    done = subprocess.run(("python3", str(tool)), capture_output=True, text=True)
    assert done.returncode == (1 if fault else 0), done.stderr
    assert (fault or "") in done.stderr


CODE = "\tPHASE(rx, PHASE_RX) \\\n\tSTEP(one, PHASE_BEFORE, IP4) \\\n\tSTEP(two, PHASE_AFTER, BOTH) \\\n\tPHASE(free, PHASE_FREE)\n"
TEXT = "    rx -> one [-> two] -> port_tx\n\n| step | file |\n|---|---|\n| rx | a |\n| one | b |\n| two | c |\n| free | d |\n\n"
STEP_ROWS = [
    ("the_order_of_the_code", TEXT, None),
    ("a_row_is_missing", TEXT.replace("| two | c |\n", ""), "the table has the steps rx, one, free; "),
    (
        "rows_are_swapped",
        TEXT.replace("two", "@").replace("one", "two").replace("@", "one"),
        "the table has the steps rx, two",
    ),
    ("an_arrow_is_missing", TEXT.replace(" [-> two]", ""), "the line of arrows has the steps one after rx; "),
]


@pytest.mark.parametrize(("text", "fault"), [row[1:] for row in STEP_ROWS], ids=[row[0] for row in STEP_ROWS])
def compares_steps_with_the_code(tmp_path: Path, text: str, fault: str | None) -> None:
    for name, content in (
        ("tools/check_docs", TOOL.read_text(encoding="utf-8")),
        ("src/datapath/steps.h", CODE),
        ("docs/internals/packet.md", text),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    subprocess.run(("git", "init", "-q"), cwd=tmp_path, check=True)
    done = subprocess.run(("python3", str(tmp_path / "tools/check_docs")), capture_output=True, text=True)
    assert done.returncode == (1 if fault else 0)
    assert (fault or "") in done.stderr
