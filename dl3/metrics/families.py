"""From the replies of a program to families of samples of prometheus_client."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family

from dl3.metrics.words import LATENCY_EDGES_S, Metric, names
from dl3.model.fault import Fault

Replies = Mapping[str, Mapping[str, Any]]  # by method
SOCKET = "socket"
INFINITY = "+Inf"
MOST_HZ = 1e15  # more is not a frequency


def found(element: Mapping[str, Any], path: str) -> Any:
    """A field below others ('routes.ip4'); None if it is not there."""
    value: Any = element
    for word in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(word)
    return value


def unexpected(metric: Metric, what: object) -> Fault:
    """The program is another one, or another version."""
    return Fault(
        f"{metric.program}'s reply to '{metric.method}' has {what!r:.60} for {metric.name}: use the same version of dl3"
    )


def number(metric: Metric, value: object, unit: float = 1.0) -> float:
    """A value of a reply as a number, in units of so many of it."""
    if metric.wanted is not None:
        return float(value == metric.wanted)
    if not isinstance(value, int | float):
        raise unexpected(metric, value)
    try:
        found = float(value) * metric.scale / unit
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise unexpected(metric, value)
    return found


def elements(metric: Metric, reply: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The elements with series of their own; one of a list within a list has the fields of the outer one, too."""
    level: list[Mapping[str, Any]] = [reply]
    for name in metric.each:
        below: list[Mapping[str, Any]] = []
        for outer in level:
            inner = outer.get(name)
            if not isinstance(inner, list) or not all(isinstance(one, Mapping) for one in inner):
                raise unexpected(metric, inner)
            below += [{**outer, **one} for one in inner] if outer is not reply else inner
        level = below
    for one in level:
        if not any(one.get(key) == value for key, value in metric.without.items()):
            yield one


def samples(metric: Metric, element: Mapping[str, Any], tsc_hz: float) -> Iterator[tuple[tuple[str, ...], float]]:
    """(values of label and list_label, value) of one element."""
    unit = tsc_hz if metric.is_cycles else 1.0
    for name, path in metric.values.items():
        value = found(element, path)
        label = (name,) if metric.label else ()
        if value is None:
            continue
        if not metric.list_label:
            yield label, number(metric, value, unit)
            continue
        words = names(metric.list_label)
        if not isinstance(value, list) or len(value) != len(words):
            raise unexpected(metric, value)
        for word, one in zip(words, value, strict=True):
            yield (*label, word), number(metric, one, unit)


def gap_buckets(metric: Metric, element: Mapping[str, Any], tsc_hz: float) -> tuple[list[tuple[str, float]], float]:
    """Cumulative buckets from a list of counts, and the sum."""
    counts, total = found(element, metric.values[""]), found(element, metric.sum)
    if not isinstance(counts, list) or not counts:
        raise unexpected(metric, counts)
    edges = [f"{metric.edge_us * 2**i / 1e6:g}" for i in range(len(counts) - 1)] + [INFINITY]
    n, buckets = 0.0, []
    for edge, count in zip(edges, counts, strict=True):
        n += number(metric, count)
        buckets.append((edge, n))
    return buckets, number(metric, total, tsc_hz)


def latency_buckets(metric: Metric, element: Mapping[str, Any]) -> tuple[list[tuple[str, float]], float]:
    """dl3gen's many narrow buckets in a few: each counts below the first edge that is not below its own."""
    latency = found(element, metric.values[""])
    try:
        narrow = [(float(high) / 1e9, int(n)) for _, high, n in latency["histogram"]]
        everything = number(metric, latency["n"])
        total = everything * number(metric, latency["mean"]) / 1e9
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise unexpected(metric, latency) from error
    if not math.isfinite(total):
        raise unexpected(metric, latency)
    buckets = [(f"{edge:g}", float(sum(n for high, n in narrow if high <= edge))) for edge in LATENCY_EDGES_S]
    return [*buckets, (INFINITY, max(everything, buckets[-1][1]))], total


def family(metric: Metric) -> Family:
    """Empty, of the right type."""
    labels = (SOCKET, *metric.label_names)
    kinds: dict[str, Any] = {"counter": CounterMetricFamily, "histogram": HistogramMetricFamily}
    made: Family = kinds.get(metric.kind, GaugeMetricFamily)(metric.name, metric.text, labels=labels)
    return made


def frequency(metric: Metric, reply: Mapping[str, Any]) -> float:
    """Cycles per second; 1 of a reply that says nothing of it."""
    hz = reply.get("tsc_hz", 1.0)
    if not isinstance(hz, int | float) or not 0 < hz < MOST_HZ:
        raise unexpected(metric, hz)
    return float(hz)


def add(into: Any, metric: Metric, socket: str, reply: Mapping[str, Any]) -> None:
    """The samples of one metric of one program."""
    tsc_hz = frequency(metric, reply)
    for element in elements(metric, reply):
        labels = (socket, *(str(found(element, path)) for path in metric.labels.values()))
        if metric.kind == "info":
            into.add_metric(labels, 1)
        elif metric.kind == "histogram":
            buckets, total = (
                gap_buckets(metric, element, tsc_hz) if metric.edge_us else latency_buckets(metric, element)
            )
            into.add_metric(labels, buckets, total)
        else:
            for more, value in samples(metric, element, tsc_hz):
                into.add_metric((*labels, *more), value)


def families(metrics: Iterable[Metric], read: Mapping[str, tuple[str, Replies | None]]) -> Iterator[Family]:
    """All metrics of all programs; `read`: socket = (program, its replies, or None if it does not answer)."""
    for metric in metrics:
        made: Any = family(metric)
        for socket, (program, replies) in read.items():
            if program != metric.program:
                continue
            if not metric.method:
                made.add_metric((socket,), float(replies is not None))
            elif replies and metric.method in replies:
                add(made, metric, socket, replies[metric.method])
        if made.samples:
            yield made
