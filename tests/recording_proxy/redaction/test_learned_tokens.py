"""Tokens that a header showed to be credentials are secrets wherever else they stand."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from signet_recording_proxy.redaction.redactor import Redactor
from tests.recording_proxy.redaction.lines import line, redacted


@pytest.mark.parametrize("token", ["shapeless-token-of-mine", "short15"])
def test_a_token_that_was_authorized_is_a_secret_anywhere(token: str) -> None:
    """A token without any known shape, once seen in Authorization, is recognised in later exchanges."""
    token += "-2"
    redactor = Redactor({})
    redactor.exchange(line(headers=[("authorization", f"Bearer {token}")]))
    later = redactor.exchange(line({"note": f"I am {token}"})).decode()
    assert '"I am <redacted:1>"' in later


@pytest.mark.parametrize("member", [{"authorization": "def"}, [["authorization", "Bearer <redacted:1> def"]]])
def test_the_header_hides_no_member_of_its_name(member: Any) -> None:
    """Beside an Authorization header, what the body says under that name is taken out as well."""
    written = redacted({"h": member}, headers=[("authorization", "Bearer abc")])
    assert written["headers"] == [["authorization", "Bearer <redacted:1>"]]
    assert "def" not in str(written["body"])


def test_a_plain_word_is_not_learned() -> None:
    """A token such as `development` occurs by chance: it is taken out of its header alone."""
    redactor = Redactor({})
    written = redactor.exchange(line({"note": "for development"}, headers=[("authorization", "Bearer development")]))
    assert b"for development" in written
    assert b"Bearer <redacted:1>" in written


def test_every_token_that_was_authorized_is_learned() -> None:
    """The hundredth as well as the first."""
    redactor = Redactor({})
    for number in range(100):
        redactor.exchange(line(headers=[("authorization", f"Bearer shapeless-token-{number:03d}")]))
    later = redactor.exchange(line({"a": "I am shapeless-token-000", "b": "shapeless-token-099"})).decode()
    assert '{"a":"I am <redacted:1>","b":"<redacted:100>"}' in later


def test_the_password_in_basic_credentials_is_learned() -> None:
    """It is a secret of its own, known wherever it stands."""
    credentials = base64.b64encode(b"user:hunter2-of-mine").decode()
    written = redacted({"a": "it is hunter2-of-mine"}, headers=[("authorization", f"Basic {credentials}")])
    assert written["body"]["json"]["a"].startswith("it is <redacted:")
    assert credentials not in str(written)
