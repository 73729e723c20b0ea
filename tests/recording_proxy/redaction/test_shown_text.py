"""A text is searched as it shows: without escapes, colours and numbers of lines; they stay where they are."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from signet_recording_proxy.redaction.shown_text import decode, search_shown, show
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


@pytest.mark.parametrize("in_json", [False, True])
@pytest.mark.parametrize("name", [name for name in SECRETS if name != "twice base64"])
def test_a_secret_in_colour_is_redacted(name: str, in_json: bool) -> None:
    """What begins and ends the colour stays."""
    text = f"\x1b[1;32m{SECRETS[name]}\x1b[0m"
    found = body_json({"transcript": _row(text) if in_json else text})["transcript"]
    content = _content(found) if in_json else found
    assert S not in content
    assert KEY.split("\n")[1] not in content
    assert re.fullmatch(r"\x1b\[1;32m.*<redacted:1>.*\x1b\[0m", content, re.DOTALL)


def _numbered(text: str, number: str) -> str:
    return "\n".join(number.format(at) + line for at, line in enumerate(text.split("\n"), 9))


@pytest.mark.parametrize("in_json", [False, True])
@pytest.mark.parametrize("number", ["{:6}\t", "{:6}→", "{:4} | ", "{}:", "{}-", "src/app.conf:{}:", "+", "> "])
@pytest.mark.parametrize("name", [name for name in SECRETS if name != "form"])
def test_a_secret_in_numbered_lines_is_redacted(name: str, number: str, in_json: bool) -> None:
    """As tools show files, differences and what they found; the numbers around it stay."""
    text = _numbered(f"before\n{SECRETS[name]}\nthe end", number)
    found = body_json({"transcript": _row(text) if in_json else text})["transcript"]
    content = _content(found) if in_json else found
    assert S not in content
    assert KEY.split("\n")[1] not in content
    assert "VkU5TFJVNDla" not in content
    assert content.startswith(number.format(9) + "before\n" + number.format(10))
    assert content.endswith("the end")


@pytest.mark.parametrize(
    "text", ["7 apples\n8 pears: password of none", "2026:12:1\n2026:13:1", "10:30 lunch\n10:45 tea", "+1\n+2"]
)
def test_numbers_in_a_text_stay(text: str) -> None:
    """They are no numbers of lines, or nothing behind them is a secret."""
    assert body_json({"transcript": text})["transcript"] == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"\\u0070assword={S}", "\\u0070assword=<redacted:1>"),
        (f'{{"\\u0074ok\\u0065n": "{S}"}}', '{"\\u0074ok\\u0065n": "<redacted:1>"}'),
        (f"x=1\\u0026token={S}\\u003c/a", "x=1\\u0026token=<redacted:1>\\u003c/a"),
        (f"\\u30d1\\u30b9\\u30ef\\u30fc\\u30c9\\uff1a{S}", "\\u30d1\\u30b9\\u30ef\\u30fc\\u30c9\\uff1a<redacted:1>"),
        ("password=\\u0071\\u0037RtZ2mXw9Kp", "password=<redacted:1>"),
    ],
)
def test_letters_may_be_spelled_by_their_numbers(text: str, expected: str) -> None:
    """As JSON may spell each; what stands around the secret is spelled as before."""
    assert body_json({"transcript": text})["transcript"] == expected


PIECES = [*"\\nrt\n\r\t ab", "\x1b[", "32m", "0m", "\\u001b[", "\\u0061", "\\u00e9", "é", "\n12:", "\n13:", "\n+"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
ODD_TEXTS = st.lists(st.sampled_from([*PIECES, "\x0b", "\x0c"]), max_size=30).map("".join)


@given(ODD_TEXTS)
@example("\\\n\\n")
@example("\\\\n\\\x0b")
@example("\x1b[32\x0c\\n\x1b[32m")
def test_nothing_moves(text: str) -> None:
    """A place in the decoded text is a place in what is searched."""
    assert len(show(text)) == len(text)
    assert len(show(decode(text))) == len(decode(text))


@given(ODD_TEXTS, ODD_TEXTS)
@example("\\\n\\n", "\\\n")
@example("", "\x1b[32m")
def test_what_stands_around_a_secret_stays(before: str, after: str) -> None:
    """Whatever an escape looks like, and though a secret is taken up to what seems to be the end of a word."""

    def search(shown: str, token: Any) -> str:
        return re.sub(r"SECRET(?:[\\\x0b]|\x1b\[[0-9]*)*", lambda match: token(match[0]), shown)

    found = search_shown(f"{before}\\n=SECRET{after}", lambda secret: f"<{secret.lower()}>", search)
    assert found == f"{before}\\n=<secret>{after}"
