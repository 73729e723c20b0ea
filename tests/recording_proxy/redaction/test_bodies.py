"""Bodies that hide their text, and bodies that were cut."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from signet_recording_proxy.redaction.redactor import Redactor
from tests.recording_proxy.redaction.lines import PEM, line, redacted


def test_bodies_that_hide_their_text() -> None:
    """Compressed without a header that says so, and UTF-16, with bytes that are text as they are or not."""
    sent = '{"password": "abc"}'
    for raw, decode in (
        (gzip.compress(sent.encode()), lambda kept: gzip.decompress(kept).decode()),
        (sent.encode("utf-16"), lambda kept: kept.decode("utf-16")),
    ):
        exchange = line()
        exchange["request"]["body"] = {"base64": base64.b64encode(raw).decode(), "media_type": None}
        written = json.loads(Redactor({}).exchange(exchange))["request"]["body"]["base64"]
        assert decode(base64.b64decode(written)) == '{"password": "<redacted:1>"}'
    exchange["request"]["body"] = {"text": sent.encode("utf-16-le").decode(), "media_type": None}
    written = json.loads(Redactor({}).exchange(exchange))["request"]["body"]["text"]
    assert written.encode().decode("utf-16-le") == '{"password": "<redacted:1>"}'


def test_a_binary_body() -> None:
    """Secrets are found in bytes that are no text."""
    raw = b"\xff\xfe sig_sk_0123456789abcdef and c\xc3\xa4nary-value \x00"
    exchange = line()
    exchange["request"]["body"] = {"base64": base64.b64encode(raw).decode(), "media_type": None}
    written = json.loads(Redactor({"C": "cänary-value"}).exchange(exchange))["request"]["body"]["base64"]
    assert base64.b64decode(written) == b"\xff\xfe <redacted:2> and <redacted:1> \x00"


@pytest.mark.parametrize("cut_at", range(6, 24))
@pytest.mark.parametrize("secret", ["sig_sk_0123456789abcdef", "a canary of words"])
def test_a_cut_through_a_secret(secret: str, cut_at: int) -> None:
    """The beginning of a secret at the end of a cut body is left out."""
    exchange = line()
    text = f"before {secret}"[: 7 + cut_at]
    exchange["request"]["body"] = {"cut": True, "size": 9, "sha256": "0", "text": text, "media_type": None}
    kept = json.loads(Redactor({"C": "a canary of words"}).exchange(exchange))["request"]["body"]["text"]
    assert kept in ("before ", "before <redacted:1>")


def test_a_private_key_that_was_cut() -> None:
    """Without its last line a private key is one all the same."""
    assert "MIIE" not in str(redacted(text=PEM[:50] + "\nMIIE second line"))
