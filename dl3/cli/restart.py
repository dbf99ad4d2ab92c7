"""The command 'dl3 bench restart'."""

from typing import Annotated

import typer

from dl3.bench.restart import Plan, Restarted, measure, middle
from dl3.cli.printing import err, out, print_json, table
from dl3.host.root import need_root

HEADING = (
    "dl3d killed and started again under traffic, Linux keeps the routes; {n} restarts, the one with the median time"
)
COLUMNS = ("row", ">IPv4 routes", ">IPv6 routes", ">s to ready", ">s of it dump", ">sent", ">lost", "lost by name")


def in_a_line(one: Restarted) -> str:
    """A restart as soon as it is complete."""
    return f"ready after {one.ready_s:.2f} s, {one.sent - one.received:,} of {one.sent:,} datagrams lost"


def cells(name: str, one: Restarted) -> tuple[str, ...]:
    """A restart as a row."""
    numbers = (f"{one.routes4:,}", f"{one.routes6:,}", f"{one.ready_s:.2f}", f"{one.dump_s:.2f}")
    lost = "; ".join(f"{place} {n:,}" for place, n in one.lost.items())
    return (name, *numbers, f"{one.sent:,}", f"{one.sent - one.received:,}", lost)


def name_of(plan: Plan) -> str:
    """'restart-1m-routes'."""
    million = 1_000_000
    return f"restart-{f'{plan.routes4 // million}m' if plan.routes4 % million == 0 else plan.routes4}-routes"


def restart(
    routes: Annotated[
        int, typer.Option(min=1, max=10_000_000, metavar="N", help="IPv4 routes in Linux.")
    ] = Plan.routes4,
    routes6: Annotated[
        int, typer.Option("--routes6", min=0, max=1_000_000, metavar="N", help="IPv6 routes in Linux.")
    ] = Plan.routes6,
    pps: Annotated[
        float, typer.Option(min=100, max=100_000, metavar="PPS", help="Datagrams per second, to all IPv4 routes.")
    ] = Plan.pps,
    restarts: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Number of restarts.")] = Plan.restarts,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: all restarts.")] = False,
) -> None:
    """Restart dl3d with many routes in Linux: seconds until workers forward by all of them, and packets lost meanwhile.

    Example: dl3 bench restart --routes 100000
    """
    need_root("a restart with TAP interfaces")
    plan = Plan(routes, routes6, pps, restarts)
    found = measure(plan, lambda one: err.print(in_a_line(one), highlight=False))
    if as_json:
        print_json([one.model_dump() for one in found])
        return
    out.print(table(HEADING.format(n=restarts), COLUMNS, [cells(name_of(plan), middle(found))]))
