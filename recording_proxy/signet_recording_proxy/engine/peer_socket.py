"""Tells a client that only stopped sending from one that left: both say the same on the wire (a FIN)."""

from __future__ import annotations

import socket
import struct
import sys

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST = 4, 20, 1
_HEADER = struct.Struct("=IHHII")
_ANY_STATE, _NO_COOKIE = 0xFFFFFFFF, 0xFFFFFFFF
_INODE_AT = _HEADER.size + 4 + 48 + 16
"""Behind the message's first bytes, the addresses, and four counters (`struct inet_diag_msg` of Linux)."""
_PATIENCE_S = 0.05


def is_held(connection: socket.socket) -> bool:
    """Whether a program of this machine still has the other end of a connection open.

    False also where that cannot be told: on other systems than Linux, and for clients on other machines.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        question = _question(connection)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(_PATIENCE_S)
            kernel.send(question)
            answer = kernel.recv(4096)
    except OSError:
        return False
    kind = _HEADER.unpack_from(answer)[1] if len(answer) >= _INODE_AT + 4 else None
    # A socket that no program has open has no inode.
    return kind == _SOCK_DIAG_BY_FAMILY and bool(struct.unpack_from("=I", answer, _INODE_AT)[0])


def _question(connection: socket.socket) -> bytes:
    """Asks the kernel for the socket of the other end, whose own address is our peer's."""
    family = connection.family
    theirs, ours = connection.getpeername(), connection.getsockname()
    addresses = b"".join(socket.inet_pton(family, host).ljust(16, b"\0") for host in (theirs[0], ours[0]))
    ports = struct.pack("!HH", theirs[1], ours[1])
    identity = ports + addresses + struct.pack("=III", 0, _NO_COOKIE, _NO_COOKIE)
    request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE) + identity
    return _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + request
