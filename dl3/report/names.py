"""The name of a series: only those of device, parameters, goal and time that distinguish it from the others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dl3.report.results import Results, Series
from dl3.report.units import loss, moment
from dl3.report.words import Words


def goal_text(goal_loss_ratio: float, words: Words) -> str:
    """The goal of a search: 'zero loss', or the loss it allows."""
    return words("goal.zero") if goal_loss_ratio == 0 else words("goal.some", loss=short_loss(goal_loss_ratio))


def short_loss(ratio: float) -> str:
    """A goal in percent without trailing zeros: 0.5."""
    text = loss(ratio)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def campaign_text(campaign: str, words: Words) -> str:
    """When a campaign began."""
    return words("campaign.began", at=moment(campaign))


def parameter_text(name: str, value: str, words: Words) -> str:
    """'huge pages 4 GiB'."""
    return words("parameter", name=words.name("parameter", name), value=words.quoted(value))


def job_name(key: str, results: Results, words: Words) -> str:
    """The name of a planned job or of a test run by hand; its key if unknown."""
    job, parts = results.jobs.get(key), key.split("|")
    if job is None and len(parts) == len(("case", "dut", "parameters", "test", "frame")) and not parts[0]:
        return words("trials.group", dut=parts[1], test=words.name("test", parts[3]), frame=words.frame(parts[4]))
    if job is None:
        return key
    names = {"dut": job.setup.dut.name, "test": words.name("test", job.test), "frame": words.frame(job.frame)}
    parameters = (parameter_text(*one, words) for one in job.parameters.items())
    return words("list.parts").join((job.case, words("trials.group", **names), *parameters))


@dataclass(frozen=True)
class Differences:
    """What differs between series that are shown together."""

    parameters: frozenset[str]
    has_goals: bool
    has_times: bool
    has_duts: bool
    has_wires: bool  # the only difference between some of them

    @classmethod
    def between(cls, series: Sequence[Series]) -> "Differences":
        """What distinguishes these series."""
        values: dict[str, set[str]] = {}
        for one in series:
            for key, value in one.parameters:
                values.setdefault(key, set()).add(value)
        return cls(
            parameters=frozenset(key for key, found in values.items() if len(found) > 1 or len(series) == 1),
            has_goals=len({one.goal_loss_ratio for one in series}) > 1,
            has_times=len({one.campaign for one in series}) > 1,
            has_duts=len({one.dut for one in series}) > 1,
            has_wires=len({replace(one, wire="") for one in series}) < len(series),
        )


def series_name(one: Series, of: Differences, words: Words, is_whole: bool = False) -> str:
    """The name with its distinguishing parts."""
    parameters = [parameter_text(key, value, words) for key, value in one.parameters if key in of.parameters]
    parts = [one.dut, *parameters] if is_whole or of.has_duts or not parameters else parameters
    if of.has_wires and one.wire:
        parts[-1] += words("series.wire", wire=words.name("wire", one.wire))
    if of.has_goals:
        parts.append(goal_text(one.goal_loss_ratio, words))
    if of.has_times:
        parts.append(campaign_text(one.campaign, words))
    return words("list.parts").join(parts)


def names_of(series: Iterable[Series], words: Words) -> dict[Series, str]:
    """A name for each of these series."""
    found = list(dict.fromkeys(series))
    differences = Differences.between(found)
    return {one: series_name(one, differences, words) for one in found}


def table_names(series: Iterable[Series], words: Words) -> dict[Series, str]:
    """Names for the first column of a table: always with the device; goals have their own column."""
    found = list(dict.fromkeys(series))
    of = replace(Differences.between(found), has_goals=False)
    return {one: series_name(one, of, words, is_whole=True) for one in found}


def series_names(results: Results, words: Words) -> dict[Series, str]:
    """A name for each series of the searches."""
    return names_of(results.series, words)
