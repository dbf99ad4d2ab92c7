"""English sentences of records are translated to Chinese, with their figures; none is forgotten."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dl3.host import watch
from dl3.host.seen import Seen, missing
from dl3.report.explain import sentence
from dl3.report.explain.finding import Finding
from dl3.report.sentences import NO_BED, NO_EVIDENCE, NO_RESULT, sentence_text
from dl3.report.texts import words_in
from dl3.report.words import Language

DL3 = Path(__file__).resolve().parents[1]
ENGLISH, CHINESE = words_in(Language.EN), words_in(Language.ZH)
WHY = "late: the generator skipped 1,049,954 frames (25.32%) that were due"
# Placeholders of numbers in the sentences of the sources.
PARTS = {
    "trials[-1].invalid[0]": WHY,
    "trial.invalid[0]": WHY,
    "full.invalid[0]": WHY,
    "what": "a burst of 512 frames",
    "why": f"no result: at 5,000 packets/s 4 trials were INVALID, the last because {WHY}",
    "where": " (most: dut rx ring full)",
    "top": "its ceiling of",
    "OVERLOAD": "110%",
    "throughput.dut": "dl3d",
    "result.dut": "dl3d",
    "lab.device.name": "ovs",
    "ways_of(lost)": "from left to right and from right to left",
    "words": "no port",
    "UNITS[page_kib]": "2 MiB",
    "unit": "2 MiB",
    "program": "dl3gen",
    "names": "left, right",
    "seen.problem": "this kernel has no tracefs",
    "error.strerror": "Permission denied",
    "os.strerror(ctypes.get_errno())": "Permission denied",
    "dpdk.INSTALL": "run 'tools/install-deps bench'",
    "PROGRAM": "dpdk-testpmd",
    "error.errors()[0]['msg']": "no JSON",
    "told[-1] if told else error": "no Python",
}


def written(node: ast.expr) -> str:
    """A sentence of a source, with a sample value in each placeholder."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(written(part) for part in node.values)
    assert isinstance(node, ast.FormattedValue)
    return PARTS.get(ast.unparse(node.value), "64")


def strings(path: str, beginning: str) -> Iterator[str]:
    """All strings of a file of dl3/ that begin like this."""
    tree = ast.parse((DL3 / path).read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in docstrings | inner:
            text = written(node)
            if re.match(beginning, text):
                yield text


def sources(folder: str) -> list[str]:
    """Files of a folder that are not tests."""
    return [f"{folder}/{one.name}" for one in (DL3 / folder).glob("*.py") if not one.stem.endswith("_test")]


def reported() -> list[str]:
    """Every such sentence that our programs can write."""
    found = [
        one
        for folder in ("search", "bench")
        for path in sources(folder)
        for one in strings(path, "no result(:| for)|not applicable: |loop: |frames of .* has no throughput")
    ]
    found += strings("dut/check.py", ".* has started")
    found += strings("host/hugepages.py", "only |64 more")
    found += [one for path in sources("dut") for one in strings(path, ".* is not installed: run '")]
    found += strings("host/seen.py", "threads that took|the kernel's trace ring|frequency|threads of")
    found += strings("host/watch.py", "this kernel has|a private mount|tracefs cannot|its ring cannot")
    found += strings("host/watching.py", "the machine cannot be|the observations")
    found += strings("trial/seen.py", ".* stalled more|dl3d runs on|frames missed")
    found += strings("bench/far.py", "offset between the clocks")
    return found


def figures(text: str) -> list[str]:
    """All numbers, in order of size."""
    return sorted(re.findall(r"\d[\d.,]*\d|\d", text))


@pytest.mark.parametrize("english", reported(), ids=lambda text: text[:40])
def reports_each_sentence_in_chinese_with_its_figures(english: str) -> None:
    chinese = sentence_text(english, CHINESE)
    assert re.search("[\u4e00-\u9fff]", chinese)
    assert set(figures(english)) == set(figures(chinese))
    assert not re.search("[a-z]+ [a-z]+ [a-z]+", re.sub(r"tools/install-deps \w+|Open vSwitch with DPDK", "", chinese))
    assert sentence_text(english, ENGLISH) == english


def finds_a_sentence_for_each_of_its_rows() -> None:
    english = [*reported(), *OTHERS]
    for pattern, _ in (*NO_RESULT, *NO_BED, *NO_EVIDENCE):
        assert any(re.fullmatch(pattern, one) for one in english), pattern


OTHERS = (
    "dl3gen stalled more often than it records: stalls of the first 0.210 s are missing",
    "no result: none of 1,000 frames at 3.000 Mpps came back: check cables, dst_mac, the device's routes, and the "
    "streams' 'to'",
    "not applicable: frames of 64: the tester cannot overload dl3d (110% of 9.1 Mpps is above what the line carries, "
    "9.2 Mpps)",
    "not applicable: frames of 64: the tester cannot overload dl3d (110% of 9.1 Mpps is above what was asked for, "
    "9.2 Mpps)",
    "not applicable: frames of 64: the tester cannot overload dl3d (its limit is not known: at least 9.1 Mpps)",
    "ovs has started but forwards nothing from left to right; its last words: no port",
    WHY,
    "此处不适用：dpdk-testpmd is not installed: run 'tools/install-deps bench' (package dpdk-dev)",
    "root@dut: frequency of the cores: this kernel has no cpufreq for them",
)


@pytest.mark.parametrize("english", OTHERS, ids=lambda text: text[:40])
def reports_the_other_shapes_of_a_sentence_too(english: str) -> None:
    reports_each_sentence_in_chinese_with_its_figures(english)


def reports_what_a_real_machine_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "TRACING", tmp_path / "none")
    state = watch.begin([0], {"dl3d": 2**22})
    seen = Seen.model_validate_json(json.dumps(watch.end(state)))
    texts = [sentence_text(one, CHINESE) for one in missing(seen)]
    assert "谁占用了核、占用多久，以及各次中断的时刻：此内核没有 tracefs" in texts
    assert "dl3d 的线程：它已不在运行" in texts


def reports_in_an_explanation_what_is_missing() -> None:
    finding = Finding("missing", "missing", {"sentence": "threads of dl3d: it is no longer running"})
    assert sentence(finding, CHINESE) == "缺少的证据：dl3d 的线程：它已不在运行。"
    assert sentence(finding, ENGLISH) == "Missing evidence: threads of dl3d: it is no longer running."


def leaves_unknown_values() -> None:
    for unknown in ("no result: it rained", "odd: x", "此处不适用：本机没有"):
        assert sentence_text(unknown, CHINESE) == unknown
