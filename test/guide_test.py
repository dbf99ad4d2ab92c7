"""The statements of the guides hold."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from harness.campaigns import HERE
from harness.evpn import guide_blocks
from harness.wired import TOP

from dl3.campaign.plan import planned
from dl3.campaign.reader import parsed
from dl3.cli.campaign_file import vocabulary
from dl3.report.texts import words_in
from dl3.report.words import Language

WORDS = {"ten-minutes.md": words_in(Language.EN), "ten-minutes.zh.md": words_in(Language.ZH)}
CLASSES = tomllib.loads((TOP / "schema" / "classes.toml").read_text(encoding="utf-8"))["class"]


@pytest.mark.parametrize("guide", ["operate.md", "operate.zh.md"])
def the_guide_lists_each_class_with_its_limit(guide: str) -> None:
    lines = (TOP / "docs" / "guide" / guide).read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if re.match(r"\| `\w+` \| \d+ \| \d+ \| ", line)]
    wanted = [f"| `{one['name']}` | {one['rate']} | {one['burst']} | " for one in CLASSES]
    assert [row[: len(begin)] for row, begin in zip(rows, wanted, strict=True)] == wanted


@pytest.mark.parametrize("guide", ["ten-minutes.md", "ten-minutes.zh.md"])
def the_campaign_in_the_guide_can_be_planned(guide: str) -> None:
    lines = (TOP / "docs" / "guide" / guide).read_text(encoding="utf-8").split("\n")
    begin = lines.index("    name: my-router")
    text = "\n".join(line[4:] for line in lines[begin : lines.index("", begin)])
    plan = planned(parsed(Path(guide), text.encode(), vocabulary()), HERE, "now")
    assert {job.test for case in plan.cases for job in case.jobs} == {
        "throughput",
        "latency",
        "frame loss",
        "back-to-back",
    }


def both_guides_of_overlays_say_the_same_to_linux_and_frr() -> None:
    """The leaves of evpn_test.py are made with these words."""
    linux, frr = guide_blocks()
    assert guide_blocks(".zh") == [linux, frr]
    assert linux.startswith("ip address add 192.0.2.1/24 dev uplink\n")
    assert frr.endswith("\n exit-address-family")


@pytest.mark.parametrize("guide", WORDS)
@pytest.mark.parametrize("reason", ["pacing", "late", "sink late", "stalls"])
def the_guide_names_a_reason_as_the_report_does(guide: str, reason: str) -> None:
    text = (TOP / "docs" / "guide" / guide).read_text(encoding="utf-8")
    assert WORDS[guide](f"reason.{reason}") in text


@pytest.mark.parametrize("guide", ["tunnels.md", "tunnels.zh.md"])
def frr_takes_what_the_guide_says_of_vpns(guide: str, tmp_path: Path) -> None:
    lines = (TOP / "docs" / "guide" / guide).read_text(encoding="utf-8").splitlines()
    begin, end = lines.index("    router bgp 65000"), lines.index("     set l3vpn next-hop encapsulation gre")
    file = tmp_path / "frr.conf"
    for words, status in (("gre", 0), ("udp", 2)):  # what is said of UDP is true as well
        text = "\n".join(line[4:] for line in lines[begin : end + 1]) + "\n"
        file.write_text(text.replace("encapsulation gre", f"encapsulation {words}"), encoding="utf-8")
        checked = subprocess.run(["vtysh", "-C", "-f", str(file)], capture_output=True, text=True, check=False)
        assert checked.returncode == status, checked.stdout + checked.stderr
