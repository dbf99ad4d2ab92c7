"""The page shows the contents of the records, loads nothing, and lets no record inject markup."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree.ElementTree import fromstring

import pytest
from harness.records import FRAMES, Maker, campaign
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dl3.model.campaign import Skipped
from dl3.model.evidence import Evidence
from dl3.model.results import BackToBack, Forwarding, FrameLoss, LossPoint, Recovery, Reset, Versus
from dl3.model.trial import Account, Spread, Throughput, Trial
from dl3.report.page import page
from dl3.report.results import Record
from dl3.report.words import Language

AT = "2026-11-22T00:00:00+00:00"
EVIL = "<script>alert(1)</script>\"'><img src=http://203.0.113.1/x onerror=alert(2)>"
LOADING = ("src", "srcset", "href", "xlink:href", "action", "data", "poster", "background", "style")
OUR_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "section", "footer", "h1", "h2", "p", "span"),
    *("ul", "li", "dl", "dt", "dd", "strong", "small", "div", "table", "thead", "tbody", "tr", "th", "td"),
    *("figure", "figcaption", "svg", "rect", "line", "text", "polyline", "polygon", "circle", "g", "h3", "nav", "a"),
    *("input", "label", "details", "summary", "pre"),
}
IN_FILES = ("svg", "style", "rect", "line", "text", "polyline", "polygon", "circle", "g", "title")
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, not an address that is loaded


class Reader(HTMLParser):
    """All elements with their attributes, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def _assert_harmless_link(found: dict[str, str | None]) -> None:
    """A link points to an anchor of the page, or saves a file that is harmless itself."""
    href = found["href"] or ""
    if href.startswith("#"):
        return
    assert found["download"], href[:80]
    kind, _, content = href.partition(",")
    assert kind in ("data:text/csv;charset=utf-8", "data:image/svg+xml;charset=utf-8")
    if "svg" in kind:
        saved = fromstring(unquote(content))  # noqa: S314 our own
        assert {element.tag.removeprefix(f"{{{NAMESPACE}}}") for element in saved.iter()} <= set(IN_FILES)
        assert not [key for element in saved.iter() for key in element.attrib if key in LOADING or key.startswith("on")]


def _assert_harmless(text: str) -> None:
    reader = Reader(text)
    assert {tag for tag, _ in reader.tags} <= OUR_TAGS
    for tag, found in reader.tags:
        if tag == "a":
            _assert_harmless_link(found)
        assert not [key for key in found if key in LOADING and (tag, key) != ("a", "href")]
        assert not [key for key in found if key.startswith("on")]
    assert not re.search(r"url\(|@import", "".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL)))


@pytest.mark.parametrize("language", Language)
def loads_nothing_and_runs_nothing(language: Language) -> None:
    text = page(campaign(Maker()), language, AT)
    _assert_harmless(text)
    assert "default-src 'none'" in text
    assert not re.search(r"https?://", text.replace(NAMESPACE, ""))


def leaves_markup_in_records_as_text() -> None:
    evil = Maker(dut=EVIL, campaign=EVIL, facts=((EVIL, {EVIL: [EVIL]}),))
    trial = evil.trial("64", 20e6, invalid=(EVIL,), at=EVIL)
    lost = evil.trial("64", 20e6, test="latency")
    lost = lost.model_copy(update={"account": lost.account.model_copy(update={"lost_by_place": {EVIL: 1}})})
    result = evil.result("64", 1e6)
    records = [one.model_copy(update={"frame": EVIL}) for one in (trial, lost, result)]
    text = page(records, Language.EN, AT, [EVIL])
    _assert_harmless(text)
    assert Reader(text).text.count(EVIL) >= 8


def reports_at_least_where_the_generator_was_the_limit() -> None:
    text = Reader(page([Maker().result("64", 5e6, limited_by="generator")], Language.EN, AT)).text
    assert "dl3d forwards at least 5.00 Mpps of 64-byte frames without loss" in text
    assert "the generator reached its own limit" in text
    assert "≥ 5.000" in text


def calls_nothing_too_high_where_no_trial_missed_the_goal() -> None:
    missed, words = {"upper_pps": 6e6, "ended_pps": 5.02e6}, "Upper bound: the lowest rate"
    for changes, is_shown in (({}, False), (missed, True), (missed | {"upper_pps": None}, False)):
        text = Reader(page([Maker().result("64", 5e6, limited_by="generator", **changes)], Language.EN, AT)).text
        assert (words in text, "6.000" in text) == (is_shown, is_shown)
        assert "5.02" not in text, "where the search ended says nothing of the device"


def reports_at_least_of_a_range_and_of_what_came_back_too() -> None:
    of_range = {"noise": ("time was stolen",), "interval_pps": (4e6, 5e6)}
    result = Maker().result("64", 5e6, limited_by="generator", goal_loss_ratio=0.005, conditional_pps=4.9e6, **of_range)
    text = Reader(page([result], Language.EN, AT)).text
    assert "between 4.00 and 5.00 Mpps or more (on a noisy machine)" in text
    assert "≥ 4.900" in text


def reports_a_range_of_a_single_search_on_a_noisy_machine() -> None:
    text = Reader(page([Maker().result("64", 5e6, noise=("time was stolen",), passed_pps=5.5e6)], Language.EN, AT)).text
    assert (
        "dl3d forwards between 5.00 and 5.50 Mpps (on a noisy machine) of 64-byte frames without loss: "
        "3.36 to 3.70 Gbit/s at layer 1, 3.4 to 3.7 % of line rate."
    ) in text
    for value in ("5.000–5.500 Mpps64-byte frames", "3.360–3.696 Gbit/s64-byte frames"):
        assert value in text, "a number that stands out is none either"
    assert "dl3d645.000–5.5003.360–3.6963.36–3.70" in text, "the row of the table"


def names_the_wire_on_which_the_machine_was_noisy_where_there_are_two() -> None:
    results = [
        Maker(facts=(("lab", {"wire": wire}),)).result("64", 5e6, noise=("time was stolen",))
        for wire in ("memif", "veth", "veth")
    ]
    text = Reader(page(results, Language.EN, AT)).text
    for wire in ("memif", "veth"):
        assert text.count(f"noisy while dl3d ({wire}) was measured with 64-byte frames") == 1
    assert "noisy while dl3d was measured" in Reader(page(results[1:], Language.EN, AT)).text


def reports_a_wire_without_a_line_rate() -> None:
    text = Reader(page([Maker(line_bps=0).result("64", 5e6)], Language.EN, AT)).text
    assert "This wire has no line rate" in text
    assert "% of line rate." not in text


def names_invalid_trials_with_their_reasons_and_counts_them_as_no_loss() -> None:
    maker = Maker()
    bad = maker.trial("64", 20e6, invalid=("late: the generator skipped 7 frames",), at="2026-11-21T23:00:00+00:00")
    text = Reader(page([bad, maker.trial("64", 1e6)], Language.EN, AT)).text
    assert "generator late: the generator skipped 7 frames" in text
    assert "No frames were lost in 1 valid trials." in text


def counts_no_trial_of_the_tester_as_one_of_the_device() -> None:
    maker = Maker()
    text = Reader(page([maker.trial("64", 20e6, test="ceiling"), maker.trial("64", 1e6)], Language.EN, AT)).text
    assert "1valid trials, 0 INVALID" in text
    assert "No frames were lost in 1 valid trials." in text
    proof = Reader(page([maker.trial("64", 20e6, test="proof")], Language.EN, AT)).text
    assert "1valid trials, 0 INVALID" in proof


def takes_the_later_of_two_results_for_one_question() -> None:
    maker = Maker()
    text = Reader(page([maker.result("64", 5e6), maker.result("64", 6e6)], Language.EN, AT)).text
    assert "6.000" in text
    assert "5.000" not in text


def compares_devices_in_its_sentence() -> None:
    records = [Maker().result("64", 5e6), Maker(dut="l3fwd").result("64", 4e6)]
    assert "Throughput with 64-byte frames without loss: dl3d 5.00 Mpps, l3fwd 4.00 Mpps." in page(
        records, Language.EN, AT
    )


def reports_what_could_not_be_read() -> None:
    text = page([Maker().result("64", 5e6)], Language.EN, AT, ["r:9: ignored: the line is incomplete"])
    assert "Part of the record could not be read: r:9: ignored: the line is incomplete." in text


def ints(values: tuple[float, ...]) -> tuple[int, ...]:
    """As integers."""
    return tuple(int(value) for value in values)


TEXT = st.text(max_size=30) | st.sampled_from([EVIL, "\x00\x1f\ufffe", "&amp;", "\ud800", "{0}{x}", "]]>", "--><b>"])
COUNT = st.integers(0, 2**64)
FIGURE = st.floats(0, allow_nan=False, allow_infinity=False)
SPREADS = st.builds(Spread, **{name: COUNT if name == "n" else FIGURE for name in Spread.model_fields})
FACT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FACTS = st.dictionaries(TEXT, FACT, max_size=4)
FRAME = TEXT | st.sampled_from([*FRAMES, "classic", "²", "9" * 400])
COMMON = {"at": TEXT | st.just(AT), "campaign": TEXT, "dut": TEXT, "frame": FRAME, "mean_bytes": FIGURE, "facts": FACTS}
ACCOUNTS = st.builds(
    Account,
    **{name: COUNT for name in Account.model_fields if name not in ("reordered_per", "lost_by_place")},
    reordered_per=TEXT,
    lost_by_place=st.dictionaries(TEXT, COUNT, max_size=3),
)
RATES = dict.fromkeys(("asked_pps", "offered_pps", "received_pps", "seconds", "jitter_mean", "jitter_max"), FIGURE)
TRIALS = st.builds(
    Trial,
    **COMMON,
    **RATES,
    test=st.sampled_from(["throughput", "latency", "latency", "ceiling", "free"]),
    pacing_error=st.floats(allow_nan=False, allow_infinity=False),
    invalid=st.lists(TEXT, max_size=2).map(tuple),
    account=ACCOUNTS,
    latency=SPREADS,
    latency_from_sending=SPREADS,
    load=st.none() | FIGURE,
)
RESULTS = st.builds(
    Throughput,
    **COMMON,
    **dict.fromkeys(("pps", "upper_pps", "goal_loss_ratio", "resolution", "trial_seconds", "line_bps"), FIGURE),
    **dict.fromkeys(("repetitions", "n_trials", "n_invalid"), COUNT),
    limited_by=st.sampled_from(["dut", "generator", "line", "asked"]),
)


FIGURES = st.lists(FIGURE, max_size=3).map(tuple)
POINTS = st.lists(st.builds(LossPoint, share=FIGURE, pps=FIGURE, loss_ratio=FIGURE), max_size=3).map(tuple)
LOADS = {"points": POINTS, "invalid_shares": FIGURES}
NOISE = {"noise": st.lists(TEXT, max_size=2).map(tuple)}
RATES_OF = {
    Recovery: ("overload_pps", "recovery_pps"),
    BackToBack: ("burst_pps", "frames", "throughput_pps", "implied_buffer_s", "corrected_buffer_s"),
    Forwarding: ("at_most_offered_pps", "most_pps", "most_at_pps"),
}
OTHERS = st.one_of(
    st.builds(FrameLoss, **COMMON, **NOISE, **LOADS, trial_seconds=FIGURE),
    st.builds(Recovery, **COMMON, **dict.fromkeys(RATES_OF[Recovery], FIGURE), seconds=FIGURES),
    st.builds(Reset, **COMMON, offered_pps=FIGURE, seconds=FIGURES, lost=st.lists(COUNT, max_size=2).map(tuple)),
    st.builds(BackToBack, **COMMON, **dict.fromkeys(RATES_OF[BackToBack], FIGURE), bursts=FIGURES.map(ints)),
    st.builds(Forwarding, **COMMON, **dict.fromkeys(RATES_OF[Forwarding], FIGURE), **LOADS),
    st.builds(
        Versus,
        **COMMON,
        peer=TEXT,
        test=TEXT,
        ours_pps=FIGURES,
        peer_pps=FIGURES,
        ratio=FIGURE,
        interval=st.tuples(FIGURE, FIGURE),
    ),
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(records=st.lists(TRIALS | RESULTS | OTHERS, max_size=6), language=st.sampled_from(Language))
def makes_a_harmless_page_of_any_records(records: list[Record], language: Language) -> None:
    text = page(records, language, AT)
    _assert_harmless(text)
    text.encode()


def names_searches_without_a_result() -> None:
    bad = Maker().trial("imix", 20e6, invalid=("late: the generator skipped 7 frames",))
    text = Reader(page([bad, Maker().result("64", 5e6)], Language.EN, AT)).text
    assert "No result for dl3d (IMIX frames)" in text
    assert "No result" not in page([Maker().trial("64", 1e6), Maker().result("64", 5e6)], Language.EN, AT)


def counts_reasons_where_many_trials_are_invalid() -> None:
    bad = [Maker().trial("64", 20e6, invalid=("late: the generator skipped 7 frames",)) for _ in range(31)]
    text = Reader(page(bad, Language.EN, AT)).text
    assert "31 trials are INVALID: generator late 31." in text
    assert "All 31 INVALID trials" in text


@pytest.mark.parametrize(
    ("language", "reported"),
    [(Language.EN, "TTL or hop limit expired (ttl_expired)"), (Language.ZH, "TTL 或跳数限制超时（ttl_expired）")],
)
def names_a_place_of_loss_in_words_wherever_it_stands(language: Language, reported: str) -> None:
    lossy = Maker().trial("64", 20e6)
    account = lossy.account.model_copy(update={"lost_by_place": {"ttl_expired": lossy.account.lost}})
    text = Reader(page([lossy.model_copy(update={"account": account})], language, AT)).text
    assert text.count(reported) >= 3  # table, chart, and explanation


WITHOUT_RESULT = (
    "no result: at 5,000 packets/s 4 trials were INVALID, the last because late: the generator sent nothing"
)
UNSEEN = "frequency of the cores: this kernel has no cpufreq for them"


@pytest.mark.parametrize(
    ("language", "reported"),
    [
        (Language.EN, (WITHOUT_RESULT, f"Missing evidence: {UNSEEN}.")),
        (
            Language.ZH,
            (
                "没有结果：在每秒 5,000 包的速率上有 4 次试验无效，最后一次的原因为：发生器发送不及时：一帧也没有发出",
                "缺少的证据：核的频率：此内核不为这些核提供 cpufreq。",
            ),
        ),
    ],
)
def writes_in_its_language_why_a_result_or_evidence_is_missing(language: Language, reported: tuple[str, ...]) -> None:
    lossy = Maker().trial("64", 20e6)
    assert lossy.account.lost > 0
    skipped = Skipped(at=AT, campaign=AT, job="one", reason=WITHOUT_RESULT)
    trial = lossy.model_copy(update={"evidence": Evidence(missing=(UNSEEN,))})
    text = Reader(page([trial, skipped], language, AT)).text
    assert all(one in text for one in reported)
