"""Facts about the same message in other letters, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest

from signet_conformance.selftest.edits import BODIES
from signet_conformance.selftest.transport import Chain
from signet_reference_harness.daemon_client.wire import transport_to

BODY: Mapping[str, Any] = {"harness": "référence ✓", "sessionKey": "k-1", "limit": 5, "on": True, "rows": [1, {"a": 2}]}
HEADERS = {"authorization": "Bearer tok-1", "x-signet-runtime-path": "plugin"}
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
PROMPT = "/api/hooks/user-prompt-submit"


def sent(*changes: Mapping[str, Any], body: Mapping[str, Any] = BODY) -> bytes:
    """The bytes of a prompt as they arrive."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heard = bytearray()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while not _whole(bytes(heard)):
                    heard.extend(connection.recv(65536))
                connection.sendall(ANSWER)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}{PROMPT}"

        async def run() -> int:
            chain = Chain([("odd", change) for change in changes], transport_to(url))
            async with httpx.AsyncClient(transport=chain.transport, headers=HEADERS) as client:
                status = (await client.post(url, json=dict(body))).status_code
            assert chain.applied == ["odd"]
            return status

        assert asyncio.run(run()) == 200
        thread.join(30)
        return bytes(heard)


def _whole(heard: bytes) -> bool:
    head, _, rest = heard.partition(b"\r\n\r\n")
    if b"chunked" in head.lower():
        return rest.endswith(b"0\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return b"\r\n\r\n" in heard and len(rest) >= length


def spell(**members: Any) -> Mapping[str, Any]:
    """A change of how prompts are spelled."""
    return {"do": "spell", "on": "user-prompt-submit", **members}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_says_the_same(name: str) -> None:
    """Each way of writing it is the same JSON value, and none is what it was."""
    content = sent(spell(body=name)).partition(b"\r\n\r\n")[2]
    assert json.loads(content) == BODY
    assert content != json.dumps(BODY, separators=(",", ":")).encode()


def test_a_stray_byte_is_in_a_string() -> None:
    """The byte that is not UTF-8 stands at the end of the text that was named."""
    content = sent(spell(not_utf8=["/harness", "/nowhere"])).partition(b"\r\n\r\n")[2]
    assert json.loads(content.decode("utf-8", "replace"))["harness"] == "référence ✓�"


@pytest.mark.parametrize(("coding", "opened"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)])
def test_a_body_is_coded(coding: str, opened: Callable[[bytes], bytes]) -> None:
    """The body is coded, and a header says how."""
    head, _, content = sent(spell(coding=coding)).partition(b"\r\n\r\n")
    assert f"content-encoding: {coding}".encode() in head.lower()
    assert json.loads(opened(content)) == BODY


def test_header_names_and_their_order() -> None:
    """Names can be written in capitals, the last first, and a name can come twice."""
    more = [["x-odd", "1"], ["x-odd", "2"]]
    head = sent(spell(header_names="upper", header_order="reversed", more_headers=more)).partition(b"\r\n\r\n")[0]
    names = [line.partition(b":")[0] for line in head.split(b"\r\n")[1:]]
    assert names.index(b"X-SIGNET-RUNTIME-PATH") < names.index(b"AUTHORIZATION")
    assert names.count(b"x-odd") == 2


def test_a_path_is_escaped() -> None:
    """Letters that need no escape get one."""
    assert sent(spell(path="percent")).startswith(b"POST /api/hooks/user%2Dprompt%2Dsubmit HTTP/1.1")


WIRES = [
    ("chunked", b"HTTP/1.1", b"transfer-encoding: chunked", b"content-length"),
    ("close", b"HTTP/1.1", b"connection: close", b"chunked"),
    ("http10", b"HTTP/1.0", b"content-length", b"connection"),
    ("pieces", b"HTTP/1.1", b"content-length", b"chunked"),
]


@pytest.mark.parametrize(("wire", "version", "there", "absent"), WIRES)
def test_a_request_goes_another_way(wire: str, version: bytes, there: bytes, absent: bytes) -> None:
    """Version, length and connection are as the way asks, and the body arrives whole."""
    head, _, content = sent(spell(wire=wire)).partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0].endswith(version)
    assert there in head.lower()
    assert absent not in head.lower()
    if wire != "chunked":
        assert json.loads(content) == BODY


def test_spelling_comes_after_all_other_changes() -> None:
    """What another change says is spelled too, wherever it stands in the list."""
    edit = {"do": "edit", "on": "user-prompt-submit", "set": {"/limit": 7}}
    for changes in ((spell(body="floats"), edit), (edit, spell(body="floats"))):
        assert b'"limit": 7.0' in sent(*changes)
