"""How an answer is passed on."""

from __future__ import annotations

import time

from tests.support.recorder import Call, RecorderProcess, Upstream


def test_a_client_that_needs_the_head_alone_has_heard_a_small_answer(
    recorder: RecorderProcess, upstream: Upstream
) -> None:
    """A client that leaves once it has the head was sent the body with it, so the answer was heard."""
    head = b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n"

    def apart(call: Call) -> None:
        call.send(head)
        time.sleep(0.1)  # the gap between head and body is what is tested
        call.send(b"{}")

    upstream.handlers["/apart"] = apart
    with recorder.connect() as client:
        client.sendall(b"GET /apart HTTP/1.1\r\nhost: x\r\n\r\n")
        assert client.recv(65536) == head + b"{}"
    (exchange,) = recorder.trace().exchanges
    assert exchange.error is None
