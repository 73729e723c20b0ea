"""Secrets in text that says anything: by their shape, by what stands before them."""

from __future__ import annotations

import pytest

from signet_recording_proxy.redaction.redactor import Redactor
from tests.recording_proxy.redaction.lines import SHAPED, body_json, line, redacted


@pytest.mark.parametrize("secret", SHAPED, ids=lambda s: s[:8])
@pytest.mark.parametrize(
    "around", ["{}", "see {} there", 'x="{}"', "a%3D{}", "\\n{}\\n", "({})", "https://h/p?x={}&y=1"]
)
def test_a_known_shape_is_redacted_wherever_it_stands(secret: str, around: str) -> None:
    """In text, in JSON values and names, in the path, in any header and in any query value."""
    text = around.format(secret)
    for written in (
        redacted({"a": [text], text: 1}),
        redacted(text=text),
        redacted(path=f"/x/{text}"),
        redacted(query=[("q", text)]),
        redacted(headers=[("x-other", text)]),
    ):
        assert secret not in str(written)
        assert "<redacted:1>" in str(written)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer <redacted:1>"),
        ("bearer abcdefgh12345678.x", "bearer <redacted:1>"),
        ('curl -H "x-api-key: 0123456789abcdef0"', 'curl -H "x-api-key: <redacted:1>"'),
        ("SIGNET_API_KEY=abcd1234 signet hook start", "SIGNET_API_KEY=<redacted:1> signet hook start"),
        ("export A_TOKEN='two words' B=1", "export A_TOKEN='<redacted:1>' B=1"),
        ('DB_PASSWORD="two words"', 'DB_PASSWORD="<redacted:1>"'),
        ("signet --api-key abcd12345 run", "signet --api-key <redacted:1> run"),
        ("signet --token=abcd12345 run", "signet --token=<redacted:1> run"),
        ("https://bob:pass@host/x", "https://bob:<redacted:1>@host/x"),
        ("https://0123456789abcdef@host/x", "https://<redacted:1>@host/x"),
        ("https://h/x?a=1&access_token=abc&b=2", "https://h/x?a=1&access_token=<redacted:1>&b=2"),
        ('{"a": 1, "api_key": "va\\"lue", "b": 2', '{"a": 1, "api_key": "<redacted:1>", "b": 2'),
        ('{"apiKey":"never ended', '{"apiKey":"<redacted:1>'),
        ('\\"clientSecret\\": \\"abc\\", \\"x\\"', '\\"clientSecret\\": \\"<redacted:1>\\", \\"x\\"'),
    ],
)
def test_secrets_in_running_text(text: str, expected: str) -> None:
    """What stands around a secret stays, the secret becomes its token."""
    assert redacted({"command": text})["body"]["json"]["command"] == expected
    assert redacted(text=text)["body"]["text"] == expected


@pytest.mark.parametrize(
    "text",
    [
        "task-force-of-the-very-long-name-of-2026",
        "SIGNET_API_KEY=$KEY signet hook",
        "use --token <token> or --api-key $KEY",
        "MAX_TOKENS=4096",
        "git@github.com:acme/api.git",
        "https://git@github.com/acme",
        "the bearer of this letter",
        "eyJust a word",
        '{"confirm_token": "abcdefghijkl"}',
        "session:claude-code:366659fd-0f23-4577-b9d7-16bcba37a8e9",
        "[REDACTED]",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """Names, options, addresses and prose that only look a little like secrets are left alone."""
    document = {"text": text, "sessionKey": "s-1", "confirm_token": "abcdefghijkl", "confirmToken": "0123456789ab"}
    assert body_json(document) == document


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "x",
            "eyJ",
            "eyJaaaaaaaa.",
            "sk-",
            "://",
            "://a:",
            "bearer ",
            'TOKEN="',
            '"',
            '"token":"',
            "\\",
            '\\"token',
            '\\"',
        ),
        *("&auth=", "?token=$", "?a=?b=", '"auth":"', '\\"auth\\":\\"', '{"password":"\\\\', "password%3D", "%61"),
        *('form-data; name="auth"\r\n\r\n', 'form-data; name="a"\r\nb\r\n', "token=&", "\0a"),
        *("-----BEGIN PRIVATE KEY-----", "-", "&token=", "authorization: ", "--token ", "sig_sk_", "github_pat_"),
    ],
)
def test_hostile_text_comes_to_an_end(piece: str) -> None:
    """Text made to keep patterns busy takes time in proportion to its length; otherwise this would not end."""
    text = piece * (400_000 // len(piece))
    assert Redactor({"C": "some canary"}).exchange(line(text=text)).endswith(b"\n")
