"""Runs in guests, with nothing but Python: TCP with digests, and a witness that looks at each frame as it arrives.

guest_tcp.py serve eth0                       answers on port 5001 until it is killed
guest_tcp.py send eth0 NAME BYTES ADDRESS...  sends to all of these, and prints a line of JSON for each
"""

import hashlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

PORT = 5001
BLOCK = 1 << 20
ETH_P_ALL, SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 3, 263, 8, 23, 33
AUXDATA = struct.Struct("IIIHHHH")
CSUM_NOT_READY = 8  # the peer has left the checksum open, and the guest has agreed to take it so
TCP = 6
# A transfer is first watched, frame by frame; then a longer one is not, at full speed.
WATCHED, FAST = b"w", b"f"


def _is_whole(data: bytes) -> bool:
    """Whether the words of 16 bits add up to 0xffff, as with a checksum that is right."""
    return int.from_bytes(data + bytes(len(data) % 2), "big") % 0xFFFF == 0


def judged(frame: bytes, is_open: bool) -> str:
    """What is to be said of a frame that has arrived: `other` if it is not TCP, `open`, `whole`, or what is bad."""
    ethertype, ip = frame[12:14], frame[14:]
    if ethertype == b"\x08\x00" and ip[9] == TCP:
        start, total = (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big")
        addresses = ip[12:20]
        if not _is_whole(ip[:start]):
            return "bad IPv4 checksum"
    elif ethertype == b"\x86\xdd" and ip[6] == TCP:
        start, total = 40, 40 + int.from_bytes(ip[4:6], "big")
        addresses = ip[8:40]
    else:
        return "other"
    segment = ip[start:total]
    pseudo = addresses + struct.pack("!II", total - start, TCP)
    if not is_open:
        return "whole" if _is_whole(pseudo + segment) else "bad TCP checksum"
    # The field has the sum of the pseudo header, not its complement.
    left = int.from_bytes(segment[16:18], "big") - int.from_bytes(pseudo, "big")
    return "open" if left % 0xFFFF == 0 else "bad sum of an open checksum"


class Witness(threading.Thread):
    """Receives a copy of each frame of an interface until it is told to stop."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self._socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self._socket.settimeout(0.05)
        self._socket.bind((device, ETH_P_ALL))
        self._done = threading.Event()
        self.said: Counter[str] = Counter()
        self.longest = 0
        self.start()

    def run(self) -> None:
        """Until it is told to stop, and there are no more."""
        while True:
            try:
                frame, extra, _, _ = self._socket.recvmsg(1 << 17, socket.CMSG_SPACE(AUXDATA.size))
            except TimeoutError:
                if self._done.is_set():
                    return
                continue
            status = AUXDATA.unpack(extra[0][2][: AUXDATA.size])[0]
            word = judged(frame, bool(status & CSUM_NOT_READY))
            self.said[word] += 1
            if word != "other":
                self.longest = max(self.longest, len(frame))

    def result(self) -> dict[str, Any]:
        """How many frames there were of each kind, and the length of the longest."""
        self._done.set()
        self.join()
        self._socket.close()
        return dict(self.said) | {"longest": self.longest}


def _bad_checksums() -> int:
    """As Linux counts them, in this namespace."""
    lines = Path("/proc/self/net/snmp").read_text().splitlines()
    rows = [line.split() for line in lines if line.startswith("Tcp:")]
    return int(dict(zip(*rows, strict=True))["InCsumErrors"])


def _set_merging(device: str, word: str) -> None:
    """Whether Linux merges segments as they arrive; a witness wants them one by one."""
    subprocess.run(["ethtool", "-K", device, "gro", word], check=True)


def _answer(peer: socket.socket, device: str) -> None:
    """Receive a transfer; answer with its digest, its length and what a witness said."""
    kind = peer.recv(1)
    is_watched = kind == WATCHED
    if is_watched:
        _set_merging(device, "off")
    witness = Witness(device) if is_watched else None
    peer.sendall(kind)
    digest, length = hashlib.sha256(), 0
    while piece := peer.recv(BLOCK):
        digest.update(piece)
        length += len(piece)
    reply = {"digest": digest.hexdigest(), "bytes": length, "seen": witness.result() if witness else {}}
    peer.sendall(json.dumps(reply | {"bad": _bad_checksums()}).encode())
    if is_watched:
        _set_merging(device, "on")


def serve(device: str) -> None:
    """Answer until killed."""
    with socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        print(f"serves on {device}", flush=True)
        while True:
            peer, _ = server.accept()
            with peer:
                _answer(peer, device)


def _connected(address: str) -> socket.socket:
    """A connection, as soon as somebody is there."""
    while True:
        try:
            made = socket.create_connection((address, PORT), 10)
        except OSError:
            time.sleep(0.1)
            continue
        made.settimeout(None)
        return made


def _blocks(n_bytes: int) -> list[bytes]:
    """Random data."""
    return [os.urandom(min(BLOCK, n_bytes - at)) for at in range(0, n_bytes, BLOCK)]


def _transfer(address: str, kind: bytes, blocks: list[bytes]) -> tuple[dict[str, Any], float]:
    """Send the blocks; what the other end answers, and how long it took."""
    with _connected(address) as peer:
        peer.sendall(kind)
        assert peer.recv(1) == kind  # its witness is there
        begin = time.monotonic()
        for block in blocks:
            peer.sendall(block)
        peer.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := peer.recv(65536):
            answer += piece
        return json.loads(answer), time.monotonic() - begin


def send(device: str, n_bytes: int, address: str) -> None:
    """A watched transfer, then one of all bytes; the result is a line."""
    _set_merging(device, "off")
    witness, blocks = Witness(device), _blocks(n_bytes)
    watched, _ = _transfer(address, WATCHED, blocks[:1])
    sender_saw = witness.result()
    _set_merging(device, "on")
    answer, took_s = _transfer(address, FAST, blocks)
    result = {
        "to": address,
        "is_equal": answer["digest"] == hashlib.sha256(b"".join(blocks)).hexdigest() and answer["bytes"] == n_bytes,
        "is_watched_equal": watched["digest"] == hashlib.sha256(blocks[0]).hexdigest(),
        "receiver_saw": watched["seen"],
        "sender_saw": sender_saw,
        "bad": answer["bad"] + _bad_checksums(),
        "seconds": round(took_s, 2),
    }
    print("result", json.dumps(result), flush=True)


def main(words: list[str]) -> None:
    """As the head of this file says."""
    device = words[1]
    if words[0] == "serve":
        serve(device)
    for address in words[3:]:
        send(device, int(words[2]), address)


if __name__ == "__main__":
    main(sys.argv[1:])
