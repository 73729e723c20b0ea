"""What leads away from this machine, as strace writes it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from signet_conformance.drivers.hosts.real.watch import Proxy, Watch, attempts_in

QUESTION = rb"\27\237\1\0\0\1\0\0\0\0\0\0\6models\7example\3org\0\0\1\0\1"
LOOKUP = (
    rb"7 sendmmsg(3<UDP:[192.0.2.2:5->10.0.0.53:53]>, [{msg_hdr={msg_name=NULL, msg_namelen=0, "
    rb'msg_iov=[{iov_base="' + QUESTION + rb'", iov_len=36}], msg_iovlen=1}, msg_len=36}], 1, MSG_NOSIGNAL) = 1'
)
STUB = LOOKUP.replace(b"10.0.0.53", b"127.0.0.53")
SENDTO = (
    rb'7 sendto(5<UDP:[1]>, "\1\2\1\0\0\1\0\0\0\0\0\0\3api\2ai\0\0\1\0\1", 24, 0, '
    rb'{sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("9.9.9.9")}, 16) = 24'
)
TCP = (
    rb"7 connect(3<TCP:[2]>, {sa_family=AF_INET, sin_port=htons(443), "
    rb'sin_addr=inet_addr("93.184.216.34")}, 16) = -1'
)
TCP6 = (
    rb"7 connect(3<TCPv6:[2]>, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), "
    rb'inet_pton(AF_INET6, "2606::1", &sin6_addr), sin6_scope_id=0}, 28) = -1'
)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (LOOKUP, "a look-up of models.example.org"),
        (STUB, "a look-up of models.example.org"),
        (SENDTO, "a look-up of api.ai"),
        (TCP, "a connection to 93.184.216.34 port 443"),
        (TCP6, "a connection to 2606::1 port 443"),
    ],
)
def test_what_leads_away_is_told(line: bytes, told: str) -> None:
    """A look-up by whatever call, also at a resolver of this machine, and a connection to another address."""
    assert list(attempts_in(line + b"\n")) == [told]


@pytest.mark.parametrize(
    "line",
    [
        TCP.replace(b"93.184.216.34", b"127.0.0.1"),
        TCP6.replace(b"2606::1", b"::1"),
        TCP.replace(b"TCP", b"UDP"),
        SENDTO.replace(rb"\3api\2ai", rb"\11localhost"),
        b'7 connect(3<UNIX-STREAM:[2]>, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1',
    ],
    ids=["loopback", "loopback of IPv6", "a route that is asked for", "localhost", "a socket of this machine"],
)
def test_what_stays_is_not_told(line: bytes) -> None:
    """This machine, and a UDP socket that is only connected, as a resolver does to sort addresses."""
    assert list(attempts_in(line)) == []


def test_a_proxy_sends_nothing_on() -> None:
    """What it is asked is written down, and refused."""
    proxy = Proxy()
    place = urlsplit(proxy.variables["HTTPS_PROXY"])
    with socket.create_connection((place.hostname, place.port)) as asking:
        asking.sendall(b"CONNECT api.example.org:443 HTTP/1.1\r\n\r\n")
        assert b"403" in asking.recv(1000)
    assert proxy.asked == ["a request for api.example.org:443 through a proxy"]
    proxy.close()


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_look_ups_of_each_run_of_a_watched_program_are_reported(tmp_path: Path) -> None:
    """A look-up of a program that is started watched is told, of each of its runs."""
    watch = Watch(tmp_path / "calls")
    code = "import socket, sys\ntry: socket.getaddrinfo(sys.argv[1], 443)\nexcept OSError: pass"
    command = watch.wrap([sys.executable, "-c", code])
    for name in ("a.signet.invalid", "b.signet.invalid"):
        subprocess.run([*command, name], check=True)
    assert {"a look-up of a.signet.invalid", "a look-up of b.signet.invalid"} <= set(watch.attempts())


def test_what_a_profile_expects_at_the_proxy_is_refused_and_is_no_attempt_to_leave() -> None:
    """Of two hosts the one that is expected is told apart; neither gets an answer of its own."""
    proxy = Proxy(frozenset({"plugins.example.org"}))
    place = urlsplit(proxy.address)
    for request in (
        b"CONNECT plugins.example.org:443 HTTP/1.1\r\n\r\n",
        b"GET http://plugins.example.org/feed HTTP/1.1\r\n\r\n",
        b"CONNECT plugins.example.com:443 HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection((place.hostname, place.port)) as asking:
            asking.sendall(request)
            assert b"403" in asking.recv(1000)
    assert proxy.refused == {"plugins.example.org"}
    assert proxy.asked == ["a request for plugins.example.com:443 through a proxy"]
    proxy.close()


THREADS = """
import socket, threading
def look(): [open("/dev/null").close() for _ in range(200)]
threads = [threading.Thread(target=look) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_thread_is_stopped_at_its_start_only(tmp_path: Path) -> None:
    """Until its first call that is traced strace stops a thread at each: every thread has one as it starts."""
    watch = Watch(tmp_path / "calls")
    subprocess.run(watch.wrap([sys.executable, "-c", THREADS]), check=True)
    watch.proxy.close()
    (written,) = (tmp_path / "calls").iterdir()
    lines = written.read_text("utf-8").splitlines()
    starts = {line.split()[0] for line in lines if "set_robust_list(" in line or "rseq(" in line}
    assert len(starts) >= 9
    assert watch.attempts() == []
