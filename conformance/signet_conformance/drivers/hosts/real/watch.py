"""Watches a program for attempts to reach another machine: by connections, DNS look-ups and requests to a proxy.

strace shows connections and look-ups of any program, even of a static binary. The program's environment also names a
proxy, which writes every request down and refuses it, so that most requests do not leave the machine. Without strace,
only the requests to the proxy are seen.
"""

from __future__ import annotations

import codecs
import contextlib
import ipaddress
import re
import shutil
import socket
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

_OPTIONS = (
    *("-f", "--seccomp-bpf", "-qq", "-yy", "-A", "-s", "300"),
    *("-e", "trace=connect,sendto,sendmsg,sendmmsg,set_robust_list,rseq,sigaltstack", "-e", "signal=none"),
)
"""With --seccomp-bpf, strace stops a new thread at every call until the first traced one. That is why the last three
calls are traced: glibc, Rust and Go each begin a thread with one of them and hardly ever repeat it."""
_IPV4 = re.compile(rb'sin_port=htons\((\d+)\), sin_addr=inet_addr\("([0-9.]+)"\)')
_IPV6 = re.compile(rb'sin6_port=htons\((\d+)\).*?inet_pton\(AF_INET6, "([0-9a-fA-F:.]+)"')
_SENT = re.compile(rb'(?:iov_base=|, )"((?:[^"\\]|\\.)*)"')
_DNS_PORT = 53
_DNS_HEADER_BYTES = 12
_MAX_LABEL_BYTES = 63


class Proxy:
    """An HTTP proxy that writes every request down, refuses it and passes nothing on.

    `asked` describes the refused requests, except those for an `expected` host: these hosts are in `refused`.
    """

    def __init__(self, expected: Collection[str] = ()) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._expected = expected
        self.asked: list[str] = []
        self.refused: set[str] = set()
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def address(self) -> str:
        """Its own URL, which settings of a program can also name as that of a registry that refuses every request."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables that make a program use it."""
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), self.address)
        return {**proxies, **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost,::1")}

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(2.0)
                    words = connection.recv(4096).split(b"\r\n", 1)[0].decode("ascii", "replace").split()
                    # A path in place of a URL: the request was meant for this address, not for another machine.
                    if (host := _host(words)) in self._expected:
                        self.refused.add(host)
                    elif len(words) < 2 or not words[1].startswith("/"):
                        self.asked.append(f"a request for {' '.join(words[1:2]) or 'something'} through a proxy")
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


def _host(words: Sequence[str]) -> str:
    """The host named by the first line of a request to a proxy; empty without one."""
    if len(words) < 2:
        return ""
    url = f"//{words[1]}" if words[0] == "CONNECT" else words[1]
    with contextlib.suppress(ValueError):
        return urlsplit(url).hostname or ""
    return ""


class Watch:
    """Watches programs and their processes; strace writes to `folder`.

    A request to the proxy for one of the `expected` hosts is not an attempt to reach another machine.
    """

    def __init__(self, folder: Path, expected: Collection[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._strace = shutil.which("strace")
        self.proxy = Proxy(expected)
        self._files: list[Path] = []

    @property
    def has_strace(self) -> bool:
        """Whether connections and look-ups are seen too, not only requests to the proxy."""
        return self._strace is not None

    def wrap(self, command: Sequence[str]) -> Sequence[str]:
        """The command that runs `command` under strace; `command` itself without strace."""
        if self._strace is None:
            return command
        file = self._folder / f"calls-{len(self._files)}"
        self._files.append(file)
        # -A in the options appends: the command may run several times.
        return [self._strace, *_OPTIONS, "-o", str(file), "--", *command]

    def attempts(self) -> Sequence[str]:
        """Describe each distinct attempt so far, in order."""
        described = dict.fromkeys(self.proxy.asked)
        for file in self._files:
            if file.exists():
                described.update(dict.fromkeys(attempts_in(file.read_bytes())))
        return [*described]


def attempts_in(log: bytes) -> Iterator[str]:
    """Describe each connection to another machine and each DNS look-up in a log of strace."""
    for line in log.splitlines():
        address = _IPV4.search(line) or _IPV6.search(line)
        port = int(address[1]) if address is not None else 0
        if b"connect(" not in line:
            # A message to a DNS server: by an address in the call, or on a connected socket, as `UDP:[from->to:53]`.
            if port == _DNS_PORT or b":53]" in line:
                yield from _look_ups(line)
        # A UDP socket is also connected just to sort addresses: that sends nothing.
        elif address is not None and b"<TCP" in line and not ipaddress.ip_address(address[2].decode()).is_loopback:
            yield f"a connection to {address[2].decode()} port {port}"


def _look_ups(line: bytes) -> Iterator[str]:
    for sent in _SENT.findall(line):
        name = _name_in(codecs.escape_decode(sent)[0])
        if name and name != "localhost" and not name.endswith(".localhost"):
            yield f"a look-up of {name}"


def _name_in(query: bytes) -> str:
    """The name that a DNS query asks for: labels behind the header, each after a byte with its length."""
    labels, at = [], _DNS_HEADER_BYTES
    while at < len(query) and 0 < query[at] <= _MAX_LABEL_BYTES:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace"))
        at += 1 + query[at]
    return ".".join(labels)
