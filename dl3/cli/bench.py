"""The group 'dl3 bench'; each command's module is imported on first use."""

from collections.abc import Mapping
from typing import Any

import typer

from dl3.cli.lazy import LazyGroup

RFC2544, RFC9971 = "RFC 2544: one forwarder on two ports", "RFC 9971, RFC 2889: campaigns and other measurements"
COMPARE, ONE_CORE = "Comparisons and self-tests", "One core, without devices"
KNOWN: Mapping[str, Any] = {"context_settings": {"ignore_unknown_options": True}}


class Benches(LazyGroup):
    """The commands of 'dl3 bench'."""

    sources: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
        "throughput": ("dl3.cli.rfc2544:throughput", RFC2544, {}),
        "latency": ("dl3.cli.rfc2544:latency", RFC2544, {}),
        "frame-loss": ("dl3.cli.rfc:frame_loss", RFC2544, {}),
        "back-to-back": ("dl3.cli.rfc:back_to_back", RFC2544, {}),
        "recovery": ("dl3.cli.rfc:recovery", RFC2544, {}),
        "reset": ("dl3.cli.rfc:reset", RFC2544, {}),
        "rfc2544": ("dl3.cli.rfc:rfc2544", RFC2544, {}),
        "forwarding": ("dl3.cli.rfc:forwarding", RFC9971, {}),
        "run": ("dl3.cli.campaign:run", RFC9971, {}),
        "campaigns": ("dl3.cli.campaign:campaigns", RFC9971, {}),
        "compare": ("dl3.cli.compare:compare_two", COMPARE, {}),
        "peers": ("dl3.cli.peers:peers", COMPARE, {}),
        "proof": ("dl3.cli.proof:proof", COMPARE, {}),
        "idle": ("dl3.cli.idle:idle", COMPARE, {}),
        "restart": ("dl3.cli.restart:restart", COMPARE, {}),
        "shape": ("dl3.cli.shape:shape", COMPARE, {}),
        "onecore": ("dl3.cli.onecore:onecore", ONE_CORE, KNOWN),
        "tables": ("dl3.cli.onecore:tables", ONE_CORE, {}),
        "plugin": ("dl3.cli.onecore:plugin", ONE_CORE, {}),
    }


app = typer.Typer(
    cls=Benches,
    help="Measure forwarders: throughput, latency, loss, and CPU cycles per packet.\n\nExample: dl3 bench throughput --lab",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def options() -> None:
    """Options of 'dl3 bench': none."""
