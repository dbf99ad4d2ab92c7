"""Flows as text: what is printed can be read, and a mistake is one sentence."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dl3.model.fault import UsageFault
from dl3.model.flow_text import (
    EXTENSIONS,
    MAPPED,
    PROTOCOLS,
    WITH_PORTS,
    FlowAction,
    FlowKey,
    FlowSettings,
    flow_text,
    is_icmp,
    parse_key,
    parse_settings,
)

PORTS = st.integers(0, 65535)
NAME = st.text("abcxyz019-_.", min_size=1, max_size=15)


@st.composite
def keys(draw: st.DrawFn) -> FlowKey:
    size = draw(st.sampled_from((4, 16)))
    family = 4 if size == 4 else 6
    addresses = st.binary(min_size=size, max_size=size).filter(lambda packed: packed[:12] != MAPPED)
    refused = EXTENSIONS if size == 16 else ()
    protocol = draw(st.integers(0, 255).filter(lambda n: n not in refused and (n not in (1, 58) or is_icmp(family, n))))
    has_ports, has_id = protocol in WITH_PORTS, is_icmp(family, protocol)
    ports = (draw(PORTS) if has_ports or has_id else 0, draw(PORTS) if has_ports else 0)
    return FlowKey(draw(addresses), draw(addresses), protocol, *ports)


@st.composite
def settings(draw: st.DrawFn) -> FlowSettings:
    do = draw(st.sampled_from(("route", "drop", "punt", "via")))
    via = draw(st.sampled_from(("", "10.0.0.1", "2001:db8::1"))) if do == "via" else ""
    action = FlowAction(
        do,
        via,
        draw(NAME) if do == "via" else "",
        draw(st.none() | st.integers(0, 63)) if do in ("route", "via") else None,
        draw(st.just("") | NAME) if do in ("route", "via") else "",
        draw(st.integers(0, 1 << 31)),
    )
    life = draw(st.sampled_from(((0, 0), (30, 0), (0, 345600))))
    return FlowSettings(action, draw(st.just("") | NAME), *life)


@given(keys(), settings())
def what_is_printed_can_be_read(key: FlowKey, wanted: FlowSettings) -> None:
    words = flow_text(key, wanted).split()
    found, n_words = parse_key(words)
    assert found == key
    assert parse_settings(words[n_words:]) == wanted


def words_after_the_key_may_be_in_any_order() -> None:
    assert parse_settings(["idle", "30", "dscp", "0", "dev", "east", "vrf", "red", "via", "fe80::1"]) == FlowSettings(
        FlowAction("via", "fe80::1", "east", 0), "red", 30
    )


def the_main_vrf_may_be_named() -> None:
    assert parse_settings(["drop", "vrf", "main"]) == parse_settings(["drop"])


def a_key_is_read() -> None:
    packed = socket.inet_aton("10.0.0.1"), socket.inet_aton("10.0.0.2")
    assert parse_key(["10.0.0.1", "10.0.0.2", "udp", "7", "9", "drop"]) == (FlowKey(*packed, PROTOCOLS["udp"], 7, 9), 5)
    assert parse_key(["10.0.0.1", "10.0.0.2", "icmp", "7", "drop"]) == (FlowKey(*packed, PROTOCOLS["icmp"], 7), 4)
    assert parse_key(["10.0.0.1", "10.0.0.2", "89", "drop"]) == (FlowKey(*packed, 89), 3)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("10.0.0.1 10.0.0.2", "a flow begins with SOURCE DESTINATION PROTOCOL"),
        ("10.0.0.256 10.0.0.2 tcp 1 2 drop", "invalid address '10.0.0.256': expected an IPv4 or IPv6 address"),
        ("10.0.0.1\0 10.0.0.2 tcp 1 2 drop", "invalid address"),
        ("10.0.0.1 2001:db8::1 tcp 1 2 drop", "of the same family"),
        ("::ffff:10.0.0.1 2001:db8::1 tcp 1 2 drop", "IPv4-mapped"),
        ("10.0.0.1 10.0.0.2 tpc 1 2 drop", "invalid protocol 'tpc': expected icmp, tcp"),
        ("10.0.0.1 10.0.0.2 256 drop", "invalid protocol '256'"),
        ("10.0.0.1 10.0.0.2 tcp 1", "a flow of tcp has a source port and a destination port"),
        ("10.0.0.1 10.0.0.2 tcp 1 65536 drop", "invalid port '65536': expected a number from 0 to 65535"),
        ("10.0.0.1 10.0.0.2 tcp 1 drop", "invalid port 'drop'"),
        ("10.0.0.1 10.0.0.2 tcp +1 1 drop", "invalid port"),
        ("10.0.0.1 10.0.0.2 tcp ٣ 1 drop", "invalid port"),
        ("10.0.0.1 10.0.0.2 icmp", "a flow of icmp has an identifier"),
        ("10.0.0.1 10.0.0.2 icmpv6 1 drop", "icmpv6 does not go with these addresses: use icmp"),
        ("2001:db8::1 2001:db8::2 icmp 1 drop", "use icmpv6"),
        ("2001:db8::1 2001:db8::2 1 1 drop", "use icmpv6"),
        ("10.0.0.1 10.0.0.2 58 1 drop", "use icmp"),
        *(
            (f"2001:db8::1 2001:db8::2 {number} drop", "extension header")
            for number in (0, 43, 44, 51, 60, 135, 139, 140)
        ),
        ("10.0.0.1 10.0.0.2 gre 1 2 drop", "a flow of gre has no ports: unexpected '1'"),
        ("10.0.0.1 10.0.0.2 icmp 1 2 drop", "a flow of icmp has an identifier and no ports: unexpected '2'"),
        ("10.0.0.1 10.0.0.2 gre permit", "unexpected 'permit': expected an action"),
        ("10.0.0.1 10.0.0.2 gre", "a flow without an action: expected route, 'via ADDRESS dev INTERFACE'"),
        ("10.0.0.1 10.0.0.2 gre dscp 46", "a flow without an action"),
        ("10.0.0.1 10.0.0.2 gre drop route", "'drop' and 'route': expected one of them"),
        ("10.0.0.1 10.0.0.2 gre drop dev east", "'drop' and a next hop: expected one of them"),
        ("10.0.0.1 10.0.0.2 gre via 10.0.0.3", "expected 'via ADDRESS dev INTERFACE'"),
        ("10.0.0.1 10.0.0.2 gre via east dev east", "invalid address 'east'"),
        ("10.0.0.1 10.0.0.2 gre dev", "expected a value after 'dev'"),
        ("10.0.0.1 10.0.0.2 gre dev a/b", "invalid name 'a/b' after 'dev'"),
        ("10.0.0.1 10.0.0.2 gre dev abcdefghijklmnop", "at most 15 characters"),
        ("10.0.0.1 10.0.0.2 gre route dscp 64", "invalid dscp '64': expected a number from 0 to 63"),
        ("10.0.0.1 10.0.0.2 gre route dscp 1 dscp 2", "'dscp' occurs twice"),
        ("10.0.0.1 10.0.0.2 gre drop dscp 1", "'dscp' is for packets that are forwarded, and the action is 'drop'"),
        ("10.0.0.1 10.0.0.2 gre punt mirror a", "'mirror' is for packets that are forwarded"),
        ("10.0.0.1 10.0.0.2 gre route idle 0", "invalid idle '0': expected a number from 1 to 345600"),
        ("10.0.0.1 10.0.0.2 gre route idle 1 ends 1", "'idle' and 'ends': expected one of them"),
    ],
)
def a_mistake_is_one_sentence(line: str, words: str) -> None:
    def read() -> None:
        _found, n_words = parse_key(line.split(" "))
        parse_settings(line.split(" ")[n_words:])

    with pytest.raises(UsageFault) as fault:
        read()
    assert words in str(fault.value)
