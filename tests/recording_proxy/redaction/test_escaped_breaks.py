"""A transcript is mostly JSON in a string: there a line begins behind an escaped break, and not with its `n`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from signet_recording_proxy.redaction.escaped_breaks import search_behind_breaks, show_breaks
from tests.recording_proxy.redaction.lines import body_json

S = "q7RtZ2mXw9Kp4Ls8"
KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\nABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
SECRETS = {
    "program": f"mysql -u root -p{S} shop",
    "piped": f"echo '{S}' | sudo -S reboot",
    "assigned": f"pass = {S}",
    "variable": f"DEPLOY_KEY={S}",
    "netrc": f"machine api.example.org\n  login ada\n  password {S}",
    "yaml": f"- name: API_TOKEN\n  value: {S}",
    "block of yaml": f"api_token: |\n  {S}\nnext: 1",
    "plist": f"<key>APIToken</key>\n<string>{S}</string>",
    "form": f'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n{S}\r\n--b--',
    "tabs": f"\tmysql\t-p{S}\tshop",
    "twice base64": "VkU5TFJVNDlaMmh3WHpSVk9IcFJkVmRUWVdKalpHVm1aMmhwYW10c2JXNXZjSEZ5YzNSMQ==",
    "key": f"-----BEGIN PRIVATE KEY-----\n{KEY}",
}


def _row(text: str) -> str:
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}})


def _content(row: str) -> Any:
    return json.loads(row)["message"]["content"]


@pytest.mark.parametrize("padding", ["", "and so on\n" * 9000], ids=["short", "long"])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_behind_an_escaped_break_is_redacted(name: str, depth: int, padding: str) -> None:
    """At any depth; what stands around it stays, and stays JSON."""
    text = f"before\n{SECRETS[name]}\nafter"
    for _ in range(depth):
        text = _row(text)
    first, second = body_json({"transcript": f"{_row(padding)}\n{text}"})["transcript"].split("\n")
    assert _content(first) == padding
    for _ in range(depth):
        second = _content(second)
    assert second.startswith("before\n")
    assert second.endswith("\nafter")
    assert "<redacted:1>" in second
    assert S not in second
    assert KEY.split("\n")[1] not in second


PIECES = st.lists(st.sampled_from([*"\\nrt\n\r\t\x0b ab"]), max_size=30).map("".join)
PLAIN_PIECES = st.lists(st.sampled_from([*"\\nrt\n\r\t ab"]), max_size=30).map("".join)


@given(PIECES)
@example("\\\n\\n")
@example("\\\\n\\\x0b")
def test_shown_breaks_move_nothing(text: str) -> None:
    """A place in the text is a place in what is shown."""
    assert len(show_breaks(text)) == len(text)
    assert search_behind_breaks(text, str, lambda shown, _token: shown) == text


@given(PLAIN_PIECES, PLAIN_PIECES)
@example("\\\n\\n", "\\\n")
def test_breaks_around_a_secret_stay(before: str, after: str) -> None:
    """Whatever a break looks like, and whether or not real ones stand beside it."""

    def search(shown: str, token: Any) -> str:
        return re.sub(r"SECRET[\\\x0b]*", lambda match: token(match[0]), shown)

    found = search_behind_breaks(f"{before}\\n=SECRET\\{after}", lambda secret: f"<{secret.lower()}>", search)
    assert found == f"{before}\\n=<secret>\\{after}"
