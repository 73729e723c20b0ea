"""An installation without the extra `codings`: what it cannot decode it names, and what it can read it keeps."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator

import brotli
import pytest

from signet_recording_proxy import content_coding
from signet_recording_proxy.body import KeptBody, describe
from signet_recording_proxy.redaction.redactor import Redactor
from tests.recording_proxy.redaction.lines import line


@pytest.fixture(autouse=True)
def _without_codings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither package can be found."""
    for package in ("brotli", "zstandard"):
        monkeypatch.setitem(sys.modules, package, None)
    content_coding.not_installed.cache_clear()
    yield
    content_coding.not_installed.cache_clear()


def _written(raw: bytes, coding: str | None = None) -> dict[str, object]:
    """The body of a line that carries these bytes."""
    kept = KeptBody(1000)
    kept.feed(raw)
    exchange = line()
    exchange["request"]["body"] = describe(kept, "application/json", coding)
    body: dict[str, object] = json.loads(Redactor({}).exchange(exchange))["request"]["body"]
    return body


def test_a_byte_that_is_not_utf_8_hides_neither_body_nor_secret() -> None:
    """The body is kept as in any other installation, without its secrets."""
    body = _written(b'{"prompt":"caf\xe9","apiKey":"k3y-of-the-user","note":"sig_sk_0123456789abcdef"}')
    kept = base64.b64decode(str(body["base64"]))
    assert kept == b'{"prompt":"caf\xe9","apiKey":"<redacted:2>","note":"<redacted:1>"}'


def test_a_coding_that_cannot_be_undone_is_named() -> None:
    """None of such a body is kept, also where no header names the coding."""
    coded = brotli.compress(b'{"apiKey":"k3y-of-the-user"}')
    for coding, named in (("br", "br"), (None, "unknown")):
        body = _written(coded, coding)
        assert (body["cut"], body["text"], body["size"], body["undecoded"]) == (True, "", len(coded), named)
