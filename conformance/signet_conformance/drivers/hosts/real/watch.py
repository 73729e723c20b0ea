"""Watches a program for attempts to leave this machine: its connections, and the names that it looks up.

strace sees both whatever the program is made of, a static binary too; it only stops at those calls. The program also
gets a proxy that writes requests down and sends nothing on, so that most of its requests do not go out. Without
strace, only those are seen.
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
"""A thread runs freely only after its first call that is traced: until then strace stops it at every call. So the last
three are traced too: a thread calls one at its start, whether glibc, Rust or Go made it, and hardly ever again."""
_IPV4 = re.compile(rb'sin_port=htons\((\d+)\), sin_addr=inet_addr\("([0-9.]+)"\)')
_IPV6 = re.compile(rb'sin6_port=htons\((\d+)\).*?inet_pton\(AF_INET6, "([0-9a-fA-F:.]+)"')
_SENT = re.compile(rb'(?:iov_base=|, )"((?:[^"\\]|\\.)*)"')
_DNS = 53
_HEADER = 12


class Proxy:
    """A proxy for everything but this machine, which writes down what it is asked and sends nothing on."""

    def __init__(self, expected: Collection[str] = ()) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._expected = expected
        self.asked: list[str] = []
        self.refused: set[str] = set()
        """Those of the `expected` hosts that were asked for: nothing was sent there either."""
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def address(self) -> str:
        """Where it listens: a registry, for one, that has nothing."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def variables(self) -> Mapping[str, str]:
        """What tells a program of it."""
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), self.address)
        return {**proxies, **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost,::1")}

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(2.0)
                    words = connection.recv(4096).split(b"\r\n", 1)[0].decode("ascii", "replace").split()
                    # What is asked of it by its own address was not meant for anywhere else.
                    if (host := _host(words)) in self._expected:
                        self.refused.add(host)
                    elif len(words) < 2 or not words[1].startswith("/"):
                        self.asked.append(f"a request for {' '.join(words[1:2]) or 'something'} through a proxy")
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


def _host(words: Sequence[str]) -> str:
    """The host that the first line of a request to a proxy names; empty where it names none."""
    if len(words) < 2:
        return ""
    where = f"//{words[1]}" if words[0] == "CONNECT" else words[1]
    with contextlib.suppress(ValueError):
        return urlsplit(where).hostname or ""
    return ""


class Watch:
    """Watches the processes of programs; `folder` takes what strace writes.

    A request for one of the `expected` hosts at the proxy is no attempt to leave: the proxy refuses it.
    """

    def __init__(self, folder: Path, expected: Collection[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._strace = shutil.which("strace")
        self.proxy = Proxy(expected)
        self._files: list[Path] = []

    @property
    def sees(self) -> bool:
        """Whether everything is seen."""
        return self._strace is not None

    def watched(self, command: Sequence[str]) -> Sequence[str]:
        """The command, watched if that is possible."""
        if self._strace is None:
            return command
        file = self._folder / f"calls-{len(self._files)}"
        self._files.append(file)
        # Appended: one session's program may run more than once.
        return [self._strace, *_OPTIONS, "-o", str(file), "--", *command]

    def tries(self) -> Sequence[str]:
        """Describe the attempts of the programs so far, each once."""
        told = dict.fromkeys(self.proxy.asked)
        for file in self._files:
            if file.exists():
                told.update(dict.fromkeys(outside(file.read_bytes())))
        return [*told]


def outside(calls: bytes) -> Iterator[str]:
    """The connections and look-ups that lead away from this machine, in words, of what strace wrote."""
    for line in calls.splitlines():
        place = _IPV4.search(line) or _IPV6.search(line)
        port = int(place[1]) if place is not None else 0
        if b"connect(" not in line:
            if port == _DNS or b":53]" in line:
                yield from _names(line)
        elif place is not None and b"<TCP" in line and not ipaddress.ip_address(place[2].decode()).is_loopback:
            yield f"a connection to {place[2].decode()} port {port}"


def _names(line: bytes) -> Iterator[str]:
    for sent in _SENT.findall(line):
        name = _name(codecs.escape_decode(sent)[0])
        if name and name != "localhost" and not name.endswith(".localhost"):
            yield f"a look-up of {name}"


def _name(question: bytes) -> str:
    labels, at = [], _HEADER
    while at < len(question) and 0 < question[at] < 64:
        labels.append(question[at + 1 : at + 1 + question[at]].decode("ascii", "replace"))
        at += 1 + question[at]
    return ".".join(labels)
