"""The comparison's rules."""

from pathlib import Path

import pytest

from dl3.bench.contest import ROWS, Row, check_equal, rows_named
from dl3.bench.contestants import MAKERS
from dl3.bench.onecore import Job
from dl3.bench.sides import Contestant, Entry
from dl3.model.fault import Fault, UsageFault


def has_the_rows_that_the_product_promises() -> None:
    assert {row.name for row in ROWS} >= {
        *("ipv4-1-route", "ipv4-1m-routes", "ipv6-1-route", "ipv6-200k-routes"),
        *("xconnect", "xconnect-mac", "self-1m-over-1", "ipv4-1m-routes-half-load"),
        *("memif-2-core", "generator-multi-flow", "generator-memif", "sink"),
        *("generator-flowgen", "generator-16m-flows"),
        *("mirror-ipv4-1-route", "mirror-ipv4-1m-routes"),
    }
    assert {side.program for row in ROWS for side in (row.ours, row.peer)} <= set(MAKERS)


def picks_rows_by_name() -> None:
    assert [row.name for row in rows_named(["xconnect", "ipv4-1-route"])] == ["xconnect", "ipv4-1-route"]
    assert rows_named([]) == ROWS


def names_the_rows_when_one_is_unknown() -> None:
    with pytest.raises(UsageFault, match="there is no row 'ipv5'; there are ipv4-1-route"):
        rows_named(["ipv5"])


def refuses_unequal_march() -> None:
    job = Job("x", ("true",), Path("t"))
    row = Row("row", Entry("dl3d"), Entry("l3fwd"))
    check_equal(row, Contestant(job, "native"), Contestant(job, "native"))
    with pytest.raises(Fault, match="dl3d was built with -march=native, l3fwd with -march=corei7"):
        check_equal(row, Contestant(job, "native"), Contestant(job, "corei7"))
