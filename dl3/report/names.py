"""What a series is called: the device, and of goal and time only what tells it from the others."""

from dl3.report.results import Results, Series
from dl3.report.units import loss, moment
from dl3.report.words import Words


def goal_text(goal_loss_ratio: float, words: Words) -> str:
    """The goal of a search: 'zero loss', or the loss it allows."""
    return words("goal.zero") if goal_loss_ratio == 0 else words("goal.some", loss=loss(goal_loss_ratio))


def campaign_text(campaign: str, words: Words) -> str:
    """When a campaign began."""
    return words("campaign.began", at=moment(campaign))


def series_names(results: Results, words: Words) -> dict[Series, str]:
    """A name for each series."""
    has_goals = len({one.goal_loss_ratio for one in results.series}) > 1
    has_times = len({record.campaign for record in results.searches}) > 1
    return {one: series_name(one, words, has_goals, has_times) for one in results.series}


def series_name(one: Series, words: Words, has_goals: bool, has_times: bool) -> str:
    """The name with what tells it from others."""
    parts = [one.dut]
    if has_goals:
        parts.append(goal_text(one.goal_loss_ratio, words))
    if has_times:
        parts.append(campaign_text(one.campaign, words))
    return ", ".join(parts)
