"""The list of metrics and alerts, from schema/*.toml: the same list makes the samples, the dashboard and the rules."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Kind = Literal["gauge", "counter", "histogram", "info"]
PROGRAMS = ("dl3d", "dl3gen")
PACKETS = "packets"
CYCLES, SECONDS = "_cycles", "_seconds"
LATENCY_EDGES_S = tuple(digit * 10.0**power for power in range(-6, 1) for digit in (1, 2, 5))[:-2]  # 1 us to 1 s


@dataclass(frozen=True)
class Metric:
    """A metric and where its samples are: elements of the lists `each` of the reply to a method."""

    name: str  # a counter's without _total
    kind: Kind
    method: str
    text: str
    group: str
    each: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # label = field of the element
    values: Mapping[str, str] = field(default_factory=dict)  # value of `label` = field; {"": field} without label
    label: str = ""
    list_label: str = ""  # the field is a list; its values have these names of a schema
    scale: float = 1.0
    is_cycles: bool = False
    wanted: str | None = None  # 1 if the field has this value, otherwise 0
    without: Mapping[str, str] = field(default_factory=dict)
    edge_us: int = 0  # first upper edge of a histogram of a worker's counters
    sum: str = ""  # the field with its sum

    @property
    def program(self) -> str:
        """Whose metric it is."""
        return self.name.split("_")[0]

    @property
    def series(self) -> str:
        """The name of its series; those of a histogram have endings of their own."""
        return f"{self.name}_total" if self.kind == "counter" else self.name

    @property
    def label_names(self) -> tuple[str, ...]:
        """Its labels besides 'socket'."""
        return (*self.labels, *(name for name in (self.label, self.list_label) if name))


@dataclass(frozen=True)
class Alert:
    """An alert rule."""

    name: str
    expr: str
    wait: str
    severity: str
    text: str


@cache
def rows(file: str, table: str) -> tuple[dict[str, Any], ...]:
    """The rows of a table of a file of the schema."""
    text = (files("dl3") / "schema" / f"{file}.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)[table])


@cache
def names(label: str) -> tuple[str, ...]:
    """The values of a label whose rows are a schema: those of 'class' in order."""
    file = {"class": "classes"}[label]
    return tuple(row["name"] for row in rows(file, label))


def up(program: str) -> Metric:
    """The metric that is always there."""
    text = f"1: {program} answers at its socket; 0: it does not, and none of its other metrics is there"
    group = "Forwarder" if program == "dl3d" else "Generator"
    return Metric(f"{program}_up", "gauge", "", text, group)


def written(row: Mapping[str, Any]) -> Metric:
    """A row of metrics.toml."""
    values = row.get("values") or ({"": row["value"]} if "value" in row else {})
    return Metric(
        row["name"],
        row["type"],
        row["method"],
        row["text"],
        row["group"],
        tuple(row.get("each", ())),
        row.get("labels", {}),
        values,
        label=row.get("label", ""),
        scale=row.get("scale", 1.0),
        wanted=row.get("is"),
        without=row.get("without", {}),
    )


def counted(scope: Mapping[str, Any], row: Mapping[str, Any]) -> Metric:
    """A counter of counters.toml, by the row of its scope."""
    kind = row.get("metric", "counter")
    name = row["sum"] if kind == "histogram" else row["name"]
    is_cycles = name.endswith(CYCLES)
    if is_cycles:
        name = name.removesuffix(CYCLES) + SECONDS
    if "unit" in row:
        name = f"{name}_{row['unit']}"
    at = scope.get("at", "")
    place = "counter_lists." if "values" in row else at
    return Metric(
        scope["prefix"] + name,
        kind,
        scope["method"],
        row["text"],
        scope["group"],
        tuple(scope["each"]),
        scope["labels"],
        {"": place + row["name"]},
        list_label=row.get("label", ""),
        is_cycles=is_cycles,
        edge_us=row.get("edge_us", 0),
        sum=at + row.get("sum", ""),
    )


def of_scopes() -> Iterator[Metric]:
    """The metrics of counters.toml."""
    for scope in rows("metrics", "scope"):
        for row in rows("counters", "counter"):
            if row["scope"] == scope["name"] and row.get("metric") != "none":
                yield counted(scope, row)


@cache
def metrics() -> tuple[Metric, ...]:
    """All metrics."""
    return (*map(up, PROGRAMS), *map(written, rows("metrics", "metric")), *of_scopes())


@cache
def alerts() -> tuple[Alert, ...]:
    """All alert rules."""
    return tuple(
        Alert(row["name"], row["expr"], row["for"], row["severity"], row["text"]) for row in rows("metrics", "alert")
    )
