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
        ("https://bob:p@ss@host.org/@x", "https://bob:<redacted:1>@host.org/@x"),
        ("https://bob:p@ss/w#rd@host/x", "https://bob:<redacted:1>@host/x"),
        ("postgres://bob:p4/w?r#d@db.example.org/atlas", "postgres://bob:<redacted:1>@db.example.org/atlas"),
        ("redis://:p4/wrd@cache:6379/0", "redis://:<redacted:1>@cache:6379/0"),
        ("(https://bob:pass@host), mail bob@host.org", "(https://bob:<redacted:1>@host), mail bob@host.org"),
        ("git+https://u:pass@host.org/acme/api@v1.2", "git+https://u:<redacted:1>@host.org/acme/api@v1.2"),
        ('DB_PASSWORD="two \\"words\\" and" x', 'DB_PASSWORD="<redacted:1>" x'),
        ("db_password = 'it\\'s one' # x", "db_password = '<redacted:1>' # x"),
        ("password = 'C:\\\\', x = 1", "password = '<redacted:1>', x = 1"),
        ('{\\"a\\": password=\\"a1\\\\\\"b2\\" x', '{\\"a\\": password=\\"<redacted:1>\\" x'),
        ("/x/db.org:5432:atlas:robin:hunter2x", "/x/db.org:5432:atlas:robin:<redacted:1>"),
        ("password: |\n  hunter22\n  second\nuser: robin", "password: |\n  <redacted:1>\nuser: robin"),
        ("  - api_key: >-\n\n      hunter22\n    x: 1", "  - api_key: >-\n\n      <redacted:1>\n    x: 1"),
        ("machine h.org login u password hunter2x x", "machine h.org login u password <redacted:1> x"),
        ("machine h.org\n\tpassword hunter2x\n\tlogin u", "machine h.org\n\tpassword <redacted:1>\n\tlogin u"),
        ("db.org:5432:atlas:robin:hunter2x", "db.org:5432:atlas:robin:<redacted:1>"),
        ("ALTER USER u IDENTIFIED BY 'it''s' x", "ALTER USER u IDENTIFIED BY '<redacted:1>' x"),
        ("create role u login password 'abcd';", "create role u login password '<redacted:1>';"),
        ("app --db-password hunter2x run", "app --db-password <redacted:1> run"),
        ("java -Ddb.password=hunter2x -jar x", "java -Ddb.password=<redacted:1> -jar x"),
        ("SECRET_KEY_BASE=abcdefgh1 x", "SECRET_KEY_BASE=<redacted:1> x"),
        (
            'see {"password": ["abcd", "efgh"], "a": ["x"]}',
            'see {"password": ["<redacted:1>", "<redacted:2>"], "a": ["x"]}',
        ),
        (
            '{"password":{"current":"abcd","a":"x","new":"efgh"}}',
            '{"password":{"current":"<redacted:1>","a":"x","new":"<redacted:2>"}}',
        ),
        ('[["Api-Key", "abcd"], ["a", "b"]]', '[["Api-Key", "<redacted:1>"], ["a", "b"]]'),
        ('{"a": [["Api-Key", ["abcd"]]]}', '{"a": [["Api-Key", ["<redacted:1>"]]]}'),
        ('{"name":"API_KEY","value":"abcd"}', '{"name":"API_KEY","value":"<redacted:1>"}'),
        ('{"value":"abcd","name":"API_KEY"}', '{"value":"<redacted:1>","name":"API_KEY"}'),
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
        '{"tags": [["password", "rotation2026"], "a", ["a", "password"]]}',
        '{"tags": ["password", "rotation2026"], "pairs": [["password", "reset for the third time"]]}',
        '{"token": {"type": "string", "description": "what to send"}, "password": {"hint": "hunter2x"}}',
        '{"password": {"current": "is not right"}, "required": ["password", "api_key"]}',
        '{"name": "password", "value": "must be long"}',
        '{"webhookSecret": "ACME_TOKEN", "clientSecret": "OAUTH2_CLIENT_SECRET"}',
        "password: |\n  The one that you were given in the first mail of 2026.\nuser: robin",
        "password          : required",
        "the machine has login and password fields, and default login and password pages",
        "password 'must not be empty', and identified by its name",
        "src/main.ts:1234:15:error:TS2304 and a.py:10:5:E501:line",
        "http://host:8080/@scope/pkg and http://localhost:3850/x?mail=a@b.org, http://host:port/robin1@b.org",
        "ssh://github.com:acme/api2@main and docker://alpine:3/x@sha256:0b1c and http://h:${PORT}/a1@b.org",
        "psql --no-password atlas_2026 and vault --ask-token session-2026",
        "machine learning is identified with a password policy",
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
        *(
            "-----BEGIN PRIVATE KEY-----\nabc=",
            "PuTTY-User-Key-File-3:\nComment: a\nAAAA",
            "---- BEGIN SSH2 PRIVATE KEY ----",
        ),
        *(
            "password: |\n  a\n",
            "password = '\\",
            "password  :  ",
            "machine a.b login u ",
            "identified by '",
            "PASSWORD 'a",
        ),
        *("create user password '", "*:", "a:5432:b:", "://a:b/c@", "://u:p@ss/w#", "form-data; name", "form-data; a;"),
        *(
            '["token",',
            '[["token","',
            '"password":["a",',
            '"password":{"new":"',
            '"value":"a","name":"',
            '\\"value\\":\\"',
        ),
        *(
            "token|token\n",
            "token,a\n",
            '"kty',
            "kind: secret\n",
            "secrets:\n ",
            "insert into a (b) values (",
            "codes:\n1234",
        ),
        *("-----BEGIN PRIVATE KEY-----", "-", "&token=", "authorization: ", "--token ", "sig_sk_", "github_pat_"),
    ],
)
def test_hostile_text_comes_to_an_end(piece: str) -> None:
    """Text made to keep patterns busy takes time in proportion to its length; otherwise this would not end."""
    text = piece * (400_000 // len(piece))
    assert Redactor({"C": "some canary"}).exchange(line(text=text)).endswith(b"\n")


@pytest.mark.parametrize("token", ["xoxe.xoxp-1-Mi0yLTk4_CPwxo6pgZ", "sk_prod_9fKq2Lm7Xw-cqd526qdBV_TyFT"])
def test_a_token_is_taken_to_its_end(token: str) -> None:
    """With the marks that may stand inside."""
    assert redacted(text=f"x={token}, y")["body"]["text"] == "x=<redacted:1>, y"
