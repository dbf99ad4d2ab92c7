"""Flows as records of a file, and back."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dl3.model.fault import UsageFault
from dl3.model.flow_file import (
    ACTION,
    BY_ROUTE,
    DROP,
    FIXED_END,
    FLOW,
    IS_IPV6,
    KEEP_DSCP,
    LIFE_BITS,
    MOST_ACTIONS,
    OF_VRF,
    PUNT,
    VIA,
    FlowFile,
    Records,
)
from dl3.model.flow_text import FlowAction, FlowKey, FlowSettings, address, address_text, parse_key, parse_settings

DO_NUMBERS: Mapping[str, int] = {"route": BY_ROUTE, "via": VIA, "drop": DROP, "punt": PUNT}
DO_WORDS = {number: word for word, number in DO_NUMBERS.items()}
MOST_VRFS = 4096  # with the main one
KEY = struct.Struct(">16s16sHH")
REST = struct.Struct("<HBBII16x")  # VRF, protocol, kind, action, time; no packets yet


def set_action(record: np.void, action: FlowAction) -> None:
    """Fills a record of zeros."""
    via = address(action.via) if action.via else b""
    record["do"], record["subscriber"] = DO_NUMBERS[action.do], action.subscriber
    record["dscp"] = KEEP_DSCP if action.dscp is None else action.dscp
    record["via_family"] = {0: 0, 4: 4, 16: 6}[len(via)]
    record["via"][: len(via)] = list(via)
    record["dev"], record["mirror"] = action.dev.encode(), action.mirror.encode()


class RecordMaker:
    """Makes records from lines of text. `timeouts_s`: those of the configuration, whose numbers a file has."""

    def __init__(self, timeouts_s: Sequence[int] = ()) -> None:
        self._lives = {seconds: life for life, seconds in enumerate(timeouts_s, 1)}
        self._actions: dict[FlowAction, int] = {}
        self._vrfs = {"": 0}
        self._known: dict[tuple[str, ...], tuple[int, int, int, int]] = {}  # words after a key: VRF, life, action, time
        self._made = bytearray()

    def add(self, words: Sequence[str]) -> None:
        """The words of a line; UsageFault if something in it is wrong."""
        key, n_words = parse_key(words)
        rest = tuple(words[n_words:])
        known = self._known.get(rest)
        if known is None:
            known = self._known[rest] = self.numbers_of(parse_settings(rest))
        vrf, life, action, time_ms = known
        if not (vrf or key.protocol or any(key.src) or any(key.dst)):
            raise UsageFault("a flow of zeros only is not possible")
        kind = life | (IS_IPV6 if len(key.src) == 16 else 0)
        self._made += KEY.pack(key.src, key.dst, key.src_port, key.dst_port)
        self._made += REST.pack(vrf, key.protocol, kind, action, time_ms)

    def numbers_of(self, settings: FlowSettings) -> tuple[int, int, int, int]:
        """VRF, life, action and time as numbers of the file."""
        life, time_ms = 0, 0
        if settings.idle_s:
            life = self._lives.get(settings.idle_s, 0)
            if not life:
                known = ", ".join(str(seconds) for seconds in self._lives) or "none are given"
                raise UsageFault(
                    f"'idle {settings.idle_s}' is none of the timeouts ({known}): give those of dl3d with --timeouts"
                )
        elif settings.ends_s:
            life, time_ms = FIXED_END, settings.ends_s * 1000
        vrf = self._vrfs.setdefault(settings.vrf, len(self._vrfs))
        if len(self._vrfs) > MOST_VRFS:
            raise UsageFault(f"more than {MOST_VRFS} VRFs")
        action = self._actions.setdefault(settings.action, len(self._actions))
        if len(self._actions) + len(self._vrfs) > MOST_ACTIONS:
            raise UsageFault(f"more than {MOST_ACTIONS:,} different actions")
        return vrf, life, action, time_ms

    def take(self) -> Records:
        """What was made since the last time."""
        made, self._made = self._made, bytearray()
        return np.frombuffer(made, dtype=FLOW)

    def actions(self) -> Records:
        """The records of all actions and VRFs."""
        vrfs = [(number, name) for name, number in self._vrfs.items() if name]
        made = np.zeros(len(self._actions) + len(vrfs), dtype=ACTION)
        for record, action in zip(made, self._actions, strict=False):
            set_action(record, action)
        for record, (number, name) in zip(made[len(self._actions) :], vrfs, strict=True):
            record["do"], record["subscriber"], record["dev"] = OF_VRF, number, name.encode()
        return made


@dataclass(frozen=True)
class SavedFlow:
    """A record of a file as users see it. `timeout`: the number of its idle timeout, 0: none."""

    key: FlowKey
    action: FlowAction
    vrf: str
    timeout: int
    ends_s: float | None  # left when it was saved
    idle_for_s: float | None
    packets: int
    bytes: int


def saved_action(record: np.void) -> FlowAction:
    """The action of a record."""
    via = bytes(record["via"])[: {4: 4, 6: 16}.get(int(record["via_family"]), 0)]
    do = DO_WORDS.get(int(record["do"]))
    if do is None:
        raise UsageFault(f"unknown action {record['do']:#04x} in a file of flows: use the dl3 that belongs to its dl3d")
    dscp = int(record["dscp"])
    dev, mirror = (bytes(record[field]).decode(errors="replace") for field in ("dev", "mirror"))
    via_text = address_text(via) if via else ""
    return FlowAction(do, via_text, dev, None if dscp == KEEP_DSCP else dscp, mirror, int(record["subscriber"]))


def vrf_names(actions: Records) -> dict[int, str]:
    """The names of the VRFs of a file by their numbers."""
    of_vrfs = actions[actions["do"] == OF_VRF]
    return {0: "", **{int(one["subscriber"]): bytes(one["dev"]).decode(errors="replace") for one in of_vrfs}}


def saved_flows(file: FlowFile, first: int, n: int) -> list[SavedFlow]:
    """Some flows of a file, from number `first` (from 0 on)."""
    vrfs = vrf_names(file.actions)
    found = []
    for one in file.flows[first : first + n]:
        n_bytes = 16 if one["kind"] & IS_IPV6 else 4
        src, dst = (bytes(one[field])[:n_bytes] for field in ("src", "dst"))
        life, seconds = int(one["kind"]) & LIFE_BITS, int(one["time_ms"]) / 1000
        found.append(
            SavedFlow(
                FlowKey(src, dst, int(one["proto"]), int(one["src_port"]), int(one["dst_port"])),
                saved_action(file.actions[int(one["action"])]),
                vrfs.get(int(one["vrf"]), str(one["vrf"])),
                life if life != FIXED_END else 0,
                seconds if life == FIXED_END else None,
                seconds if life != FIXED_END else None,
                int(one["packets"]),
                int(one["bytes"]),
            )
        )
    return found
