"""A dashboard for Grafana with a panel for each metric, made from the list of metrics."""

from collections.abc import Iterator, Sequence
from typing import Any

from dl3.metrics.words import Metric, metrics

SOURCE = {"type": "prometheus", "uid": "${source}"}
CHOSEN = '{instance=~"$instance"}'
WIDTH, HEIGHT, COLUMNS = 12, 8, 24
SHOWN = 20  # of the many series by verdict
SCHEMA_VERSION = 39  # of Grafana's dashboards
QUANTILES = (0.5, 0.99, 0.999)
# Words of a metric's name and Grafana's unit; the second one is of a counter's rate.
UNITS = (("bytes", "bytes", "Bps"), ("packets", "none", "pps"), ("seconds", "s", "none"))


def unit(metric: Metric) -> str:
    """Grafana's name of the unit."""
    if metric.name.endswith("start_time_seconds"):
        return "dateTimeFromNow"
    for word, plain, rate in UNITS:
        if metric.name.endswith(f"_{word}"):
            is_speed = metric.kind == "counter" or metric.name.endswith("speed_bytes")
            return rate if is_speed else plain
    return "cps" if metric.kind == "counter" else "none"


def queries(metric: Metric) -> Iterator[tuple[str, str]]:
    """(expression, legend) of each curve."""
    labels = ("instance", "socket", *metric.label_names)
    legend = " ".join(f"{{{{{label}}}}}" for label in metric.label_names or ("instance", "socket"))
    if metric.kind == "counter":
        rate = f"sum by ({', '.join(labels)}) (rate({metric.series}{CHOSEN}[$__rate_interval]))"
        yield (f"topk({SHOWN}, {rate})" if "verdict" in labels else rate), legend
    elif metric.kind == "histogram":
        by = f"sum by (le, {', '.join(labels)}) (rate({metric.name}_bucket{CHOSEN}[$__rate_interval]))"
        for quantile in QUANTILES:
            yield f"histogram_quantile({quantile}, {by})", f"{quantile:.1%} {legend}"
    else:
        yield f"{metric.series}{CHOSEN}", legend


def title(metric: Metric) -> str:
    """'rx packets per second': the name without the program's."""
    words = " ".join(metric.name.split("_")[1:])
    return f"{words} per second" if metric.kind == "counter" else words


def panel(metric: Metric, number: int, x: int, y: int) -> dict[str, Any]:
    """One metric."""
    targets = [
        {"refId": chr(ord("A") + i), "expr": expr, "legendFormat": legend, "datasource": SOURCE}
        for i, (expr, legend) in enumerate(queries(metric))
    ]
    return {
        "id": number,
        "type": "stat"
        if metric.kind == "info" or metric.name.endswith(("_up", "start_time_seconds"))
        else "timeseries",
        "title": title(metric),
        "description": metric.text,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit(metric)}, "overrides": []},
        "options": {"textMode": "name"} if metric.kind == "info" else {},
        "targets": targets,
    }


def row(name: str, listed: Sequence[Metric], number: int, y: int) -> list[dict[str, Any]]:
    """A heading and the panels below it; only the first row is open, so that a browser loads little."""
    is_open = number == 1
    panels = []
    for i, metric in enumerate(listed):
        x, line = WIDTH * (i % (COLUMNS // WIDTH)), i // (COLUMNS // WIDTH)
        panels.append(panel(metric, number + 1 + i, x, y + 1 + HEIGHT * line))
    place = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
    heading = {"id": number, "type": "row", "title": name, "collapsed": not is_open, "gridPos": place}
    return [{**heading, "panels": []}, *panels] if is_open else [{**heading, "panels": panels}]


def variables() -> list[dict[str, Any]]:
    """The choices at the top: the data source, and the exporters."""
    query = 'label_values({__name__=~"dl3d_up|dl3gen_up"}, instance)'
    return [
        {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
        {
            "name": "instance",
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": "instance"},
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
            "refresh": 2,
        },
    ]


def dashboard() -> dict[str, Any]:
    """The file to import into Grafana."""
    groups: dict[str, list[Metric]] = {}
    for metric in metrics():
        groups.setdefault(metric.group, []).append(metric)
    panels: list[dict[str, Any]] = []
    number, y = 1, 0
    for name, listed in groups.items():
        panels += row(name, listed, number, y)
        y += 1 if number > 1 else 1 + HEIGHT * -(-len(listed) // (COLUMNS // WIDTH))
        number += 1 + len(listed)
    return {
        "title": "D-L3",
        "uid": "dl3",
        "tags": ["dl3"],
        "schemaVersion": SCHEMA_VERSION,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": variables()},
        "panels": panels,
    }
