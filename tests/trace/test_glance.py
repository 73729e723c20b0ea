"""A glance at a line tells what the whole exchange tells, or nothing."""

from __future__ import annotations

import json

import pytest

from signet_conformance.trace.glance import Glance, glance, glance_at
from signet_conformance.trace.lines import LineReader
from signet_conformance.trace.model import Exchange
from tests.support.evidence import recordings

LINE = (
    '{"kind":"exchange","seq":7,"t0":0,"t1":1,"request":{"method":"POST","path":"/api/hooks/session-end","headers":%s,'
    '"body":%s},"response":%s,"error":%s}\n'
)
NO_HEADERS = '[["accept","*/*"]]'


def line(headers: str = NO_HEADERS, body: str = "null", response: str = "null", error: str = "null") -> bytes:
    """The line of an exchange of these parts."""
    return (LINE % (headers, body, response, error)).encode()


def whole(raw: bytes) -> Glance:
    """What the whole exchange of a line tells."""
    entry = LineReader().entry(raw, 2)
    assert isinstance(entry, Exchange)
    return glance_at(entry)


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        (line(body='{"json":{"sessionKey":" session:k-1 ","sessionId":"s-1"}}'), ("k-1", "s-1")),
        (line(body='{"json":{"sessionKey":7,"sessionId":" "}}'), ()),
        (line(), ()),
    ],
)
def test_glance_tells_the_keys_that_a_request_may_mean(raw: bytes, names: tuple[str, ...]) -> None:
    """Keys are told as the daemon reads them; numbers and blanks are passed over."""
    assert glance(raw) == whole(raw) == Glance(7, names, troubled=False)


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        (line(headers='[["X-Signet-Session-Key","k-1"]]'), ("k-1",)),
        (line(headers='[["x-signet-s\\u0065ssion-key","k-1"]]'), ("k-1",)),
        (line(body='{"text":"{\\"sessionKey\\":\\"k-1\\"}"}'), ("k-1",)),
        (line(body='{"json":["k-1"]}'), ()),
        (line(body='{"cut":true,"json":{"sessionKey":"k-1"}}'), ()),
    ],
)
def test_what_a_glance_does_not_take_in_the_whole_exchange_tells(raw: bytes, names: tuple[str, ...]) -> None:
    """A glance leaves alone a key in a header or in a text, and a body that was cut or is not an object."""
    assert glance(raw) is None
    assert whole(raw).names == names


@pytest.mark.parametrize(
    ("raw", "troubled"),
    [
        (line(response='{"status":499}'), False),
        (line(response='{"status":500}'), True),
        (line(error='"client_closed"'), True),
    ],
)
def test_trouble_is_told(raw: bytes, troubled: bool) -> None:
    """An error, and a status of 500 or more, is trouble."""
    assert glance(raw) == whole(raw)
    assert whole(raw).troubled is troubled


def test_torn_line_tells_nothing() -> None:
    """Of a line without its end nobody knows whether it is whole."""
    assert glance(line().rstrip()) is None


def test_lines_of_connectors_are_told_alike() -> None:
    """What a glance tells of any recorded line is what the whole exchange tells, and it tells of most."""
    told = 0
    for file in recordings():
        for raw in file.read_bytes().splitlines(keepends=True):
            if json.loads(raw)["kind"] == "exchange" and (seen := glance(raw)) is not None:
                assert seen == whole(raw)
                told += 1
    assert told > 100
