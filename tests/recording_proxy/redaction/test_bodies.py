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


CODED = "MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQC7VJTUt9Us8cKj"
BLOCKS = (
    f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0011\n\n{CODED}\n{CODED}\nMIIE=",
    f"-----BEGIN PRIVATE KEY-----\\n{CODED}\\nMIIE",
    f"-----BEGIN PRIVATE KEY----- {CODED} {CODED} MIIE=",
    f'-----BEGIN PRIVATE KEY-----\\n" +\n  "{CODED}\\n" +\n  "MIIE',
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n{CODED}\nMIIE\n=MIIE",
    f"PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nComment: me\nPublic-Lines: 1\n{CODED}\nPrivate-Lines: 1\nMIIE",
)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("after", ["", "\n\nThen the prose goes on.", "\nThen the prose goes on.\n\nAnd on."])
def test_a_private_key_without_its_last_line(block: str, after: str) -> None:
    """The lines that look like a key are one; what is said after them stays."""
    assert redacted(text=f"see {block}{after}")["body"]["text"] == f"see <redacted:1>{after}"


def test_a_private_key_that_was_cut() -> None:
    """Without its last line a private key is one all the same."""
    assert "MIIE" not in str(redacted(text=PEM[:50] + "\nMIIEsecondLine0"))
