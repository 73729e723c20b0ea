"""A process may have so many files open: whom the recorder has no room for is told so, and the others go on."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from signet_recording_proxy.engine import connection_limits
from signet_recording_proxy.engine.connection_limits import KEPT_FREE, ConnectionLimits
from tests.support.recorder import PATIENCE_S, RecorderProcess, Upstream

pytestmark = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="needs prlimit, to let another process have few files"
)
PLACES = 30
REFUSED = b"no room for another connection: this process may have"


@pytest.fixture
def crowded(upstream: Upstream, tmp_path: Path) -> Iterator[RecorderProcess]:
    """A recorder that may have PLACES connections."""
    recorder = RecorderProcess("--upstream", upstream.url, "--control", out=tmp_path / "t.jsonl")
    most = KEPT_FREE + PLACES
    resource.prlimit(recorder.process.pid, resource.RLIMIT_NOFILE, (most, most))
    yield recorder
    recorder.close()


def test_who_finds_no_room_is_answered_503(crowded: RecorderProcess) -> None:
    """Those that are there keep their connections; the daemon's that are idle go first. The trace says why."""
    with ExitStack() as clients:
        heard = []
        for number in range(PLACES + 10):
            client = clients.enter_context(crowded.connect())
            client.sendall(b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % number)
            heard.append(client.recv(65536))
            assert heard[-1].startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 503 "))
            assert (REFUSED in heard[-1]) is heard[-1].startswith(b"HTTP/1.1 503 ")
    served = sum(answer.startswith(b"HTTP/1.1 200 ") for answer in heard)
    assert PLACES // 2 < served <= PLACES
    ends = Counter(exchange.error for exchange in crowded.trace().exchanges)
    assert ends == {None: served, "not_carried": len(heard) - served}
    noted = crowded.out.read_bytes().count(b'"note":"' + REFUSED)
    assert noted == ends["not_carried"]
    assert crowded.command("exit") == {"ok": True}
    assert crowded.process.wait(PATIENCE_S) == 0
    assert crowded.stderr().count("warning: no room for another connection") == 1


def test_there_is_room_again_when_clients_leave(crowded: RecorderProcess) -> None:
    """Also for a client that came when there was none, and had not asked yet."""
    with ExitStack() as clients:
        for _ in range(PLACES + 10):
            clients.enter_context(crowded.connect())
        crowded.let_it_work()
        late = crowded.connect()
        crowded.let_it_work()
    with late:
        crowded.let_it_work()
        late.sendall(b"GET /late HTTP/1.1\r\nhost: x\r\n\r\n")
        assert late.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert crowded.request("GET", "/next")[0] == 200


class _Client:
    def __init__(self, *, room: ConnectionLimits, idle: bool) -> None:
        self._room, self.idle = room, idle

    def drop_idle_daemon(self) -> bool:
        dropped, self.idle = self.idle, False
        if dropped:
            self._room.give_back()
        return dropped


def test_idle_connections_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to the daemon that no request uses is given up before anyone is refused."""
    monkeypatch.setattr(connection_limits, "most_open_files", lambda: KEPT_FREE + 4)
    places = ConnectionLimits()
    clients = [_Client(room=places, idle=idle) for idle in (False, True)]
    assert all(places.enter(client) for client in clients)
    assert places.take()
    assert places.take()
    assert places.take()  # the second client's goes
    assert not clients[1].idle
    assert not places.take()
    places.give_back()
    assert not places.full
    places.leave(clients[0])
    assert places.take()


def test_the_limit_is_raised_as_far_as_it_may_be() -> None:
    """Some systems let a process begin with 256 files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 128), hard))
        connection_limits.raise_limit()
        assert connection_limits.most_open_files() == (
            connection_limits._ENOUGH if hard == resource.RLIM_INFINITY else hard
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
