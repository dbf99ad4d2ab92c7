"""Compiles filter expressions into classic BPF programs, by libpcap."""

import ctypes
from typing import Any

from dl3.model.fault import Fault, UsageFault

LIBRARIES = ("libpcap.so.0.8", "libpcap.so.1")  # of Debian and its relatives, and of others
LINK_ETHERNET = 1
SNAP_BYTES = 65535
NO_NETMASK = 0xFFFFFFFF
Program = list[list[int]]


class Instruction(ctypes.Structure):
    """struct bpf_insn."""

    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint32),
    )


class Instructions(ctypes.Structure):
    """struct bpf_program."""

    _fields_ = (("n", ctypes.c_uint), ("at", ctypes.POINTER(Instruction)))


def load() -> Any:
    """The library."""
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.pcap_open_dead.restype = ctypes.c_void_p
        library.pcap_geterr.restype = ctypes.c_char_p
        return library
    raise Fault(f"a filter needs libpcap, and neither of {' and '.join(LIBRARIES)} is installed: install it")


def attempt(library: Any, expression: str) -> Program | str:
    """The program, or libpcap's message."""
    handle = ctypes.c_void_p(library.pcap_open_dead(LINK_ETHERNET, SNAP_BYTES))
    made = Instructions()
    try:
        text = ctypes.c_char_p(expression.encode())
        if library.pcap_compile(handle, ctypes.byref(made), text, 1, ctypes.c_uint32(NO_NETMASK)):
            message: bytes = library.pcap_geterr(handle)
            return message.decode(errors="replace")
        program = [[one.code, one.jt, one.jf, one.k] for one in made.at[: made.n]]
        library.pcap_freecode(ctypes.byref(made))
        return program
    finally:
        library.pcap_close(handle)


def place_of(library: Any, expression: str) -> str:
    """Where the mistake is, as libpcap does not say it: behind the longest part that compiles."""
    words = expression.split()
    for n in range(len(words) - 1, 0, -1):
        if not isinstance(attempt(library, " ".join(words[:n])), str):
            return f" at '{' '.join(words[n:])}', after '{' '.join(words[:n])}'"
    return f" at '{expression}'"


def compile_filter(expression: str) -> Program:
    """A filter expression (pcap-filter(7)) for Ethernet frames, as instructions [code, jt, jf, k]."""
    library = load()
    if "\0" in expression:
        raise UsageFault("a filter has no zero bytes")
    program = attempt(library, expression)
    if isinstance(program, str):
        raise UsageFault(f"invalid filter{place_of(library, expression)}: {program}; see 'man pcap-filter'")
    return program
