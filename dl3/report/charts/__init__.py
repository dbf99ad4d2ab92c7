"""The charts of a report: each module here that holds a CHART is one. A new chart "
"is a new file and its test."""

import importlib
import pkgutil
from functools import cache

from dl3.report.chart import Chart


@cache
def charts() -> tuple[Chart, ...]:
    """All charts, in the order of the page."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.endswith("_test"))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(sorted((module.CHART for module in modules if hasattr(module, "CHART")), key=lambda c: c.order))
