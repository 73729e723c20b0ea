"""No secret reaches a trace line; equal secrets stay equal; what is no secret stays as it is."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signet_conformance.trace import Declared, Header, encode
from signet_recording_proxy.redaction.redactor import Redactor

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq8\n-----END RSA PRIVATE KEY-----"
SHAPED = [
    "sig_sk_0123456789abcdef",
    JWT,
    "sk-ant-api03-AbCdEf0123456789-xyz",
    "sk-proj-abcdefghij0123456789",
    "ghp_0123456789abcdefABCDEF0123456789abcd",
    "github_pat_11ABCDEFG0123456789_abcdefghij",
    "xoxb-123456789012-abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA-0123456789abcdefghijklmnopqrstu",
    PEM,
]


def line(
    body: Any = None,
    *,
    text: str | None = None,
    method: str = "POST",
    path: str = "/api/hooks/x",
    query: list[tuple[str, str]] | None = None,
    headers: list[tuple[str, str]] | None = None,
    response: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """An exchange as the recorder hands it over."""
    kept = {"text": text, "media_type": "text/plain"} if text is not None else None if body is None else {"json": body}
    request = {"method": method, "path": path, "query": query or [], "headers": headers or [], "body": kept}
    return {"kind": "exchange", "seq": 1, "conn": 1, "t0": 0.0, "t1": 1.0, "request": request, "response": response}


def redacted(*arguments: Any, canaries: dict[str, str] | None = None, **members: Any) -> dict[str, Any]:
    """The request of that exchange as it reaches the disk."""
    request: dict[str, Any] = json.loads(Redactor(canaries or {}).exchange(line(*arguments, **members)))["request"]
    return request


def body_json(*arguments: Any, **members: Any) -> Any:
    """The JSON body of that exchange as it reaches the disk."""
    return redacted(*arguments, **members)["body"]["json"]


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


def test_members_that_are_named_like_secrets() -> None:
    """String values of such members are secrets; blanks, short tokens and names of secrets are none."""
    document = {
        "password": "p",
        "apiKey": "a",
        "secret_value": "s",
        "access_token": "t",
        "OPENAI_API_KEY": "o",
        "token": "12345678",
        "env": {"GITHUB_TOKEN": "g"},
    }
    written = json.dumps(body_json(document))
    assert written.count("<redacted:") == len(document)
    harmless = {
        "password": "",
        "token": "short",
        "secret": "ACME_TOKEN",
        "tokens": "many words",
        "apiKey": None,
        "token_count": "12345678",
    }
    assert body_json(harmless) == harmless


def test_the_secrets_map_of_exec_holds_names() -> None:
    """secrets/exec maps variables to names of stored secrets: neither side is one."""
    document = {"command": "echo", "secrets": {"OPENAI_API_KEY": "OPENAI_API_KEY", "A_TOKEN": "local_name"}}
    assert body_json(document, path="/api/secrets/exec") == document


@pytest.mark.parametrize(
    "sent",
    [
        {"json": {"value": "8154711"}},
        {"json": {"value": 8154711}},
        {"json": "8154711"},
        {"json": [8154711]},
        {"text": "8154711", "media_type": None},
        {"base64": "8154711=", "media_type": None},
        {"cut": True, "size": 9, "sha256": "0", "text": "8154711 x", "media_type": None},
    ],
)
def test_the_value_of_a_stored_secret(sent: dict[str, Any]) -> None:
    """POST /api/secrets/NAME carries the value itself, whatever it looks like."""
    exchange = line(path="/api/secrets/executor")
    exchange["request"]["body"] = sent
    written = Redactor({}).exchange(exchange)
    assert b"8154711" not in written
    assert b"<redacted:" in written


def test_headers_that_hold_credentials() -> None:
    """The scheme of Authorization and the names of cookies stay; the form stays visible."""
    headers = [
        ("authorization", "Bearer abc"),
        ("proxy-authorization", "abc"),
        ("x-api-key", "abc"),
        ("cookie", "sid=abc; theme=dark"),
        ("set-cookie", "sid=abc; Path=/; HttpOnly"),
        ("authorization", "Bearer  a b"),
        ("authorization", "Bearer"),
        ("authorization", ""),
        ("x-authorization", "abc"),
        ("x-authorization", "Bearer abc"),
        ("cookie", "abc"),
        ("set-cookie", "abc; Path=/"),
        ("x-functions-key", "abc"),
        ("x-session-id", "abc"),
    ]
    assert [value for _, value in redacted(headers=headers)["headers"]] == [
        "Bearer <redacted:1>",
        "<redacted:1>",
        "<redacted:1>",
        "sid=<redacted:1>; theme=<redacted:2>",
        "sid=<redacted:1>; Path=/; HttpOnly",
        "Bearer  <redacted:3> <redacted:4>",
        "Bearer",
        "",
        "<redacted:1>",
        "Bearer <redacted:1>",
        "<redacted:1>",
        "<redacted:1>; Path=/",
        "<redacted:1>",
        "abc",
    ]


def test_query_parameters_that_hold_credentials() -> None:
    """Their values are secrets by their name."""
    query = [
        ("token", "abc"),
        ("api_key", "abc"),
        ("X-Amz-Signature", "d"),
        ("q", "abc"),
        ("token", ""),
        ("a", "1;token=x"),
    ]
    assert redacted(query=query)["query"] == [
        ["token", "<redacted:1>"],
        ["api_key", "<redacted:1>"],
        ["X-Amz-Signature", "<redacted:2>"],
        ["q", "abc"],
        ["token", ""],
        ["a", "1;token=<redacted:3>"],
    ]


@pytest.mark.parametrize("token", ["shapeless-token-of-mine", "short15"])
def test_a_token_that_was_authorized_is_a_secret_anywhere(token: str) -> None:
    """A token without any known shape, once seen in Authorization, is recognised in later exchanges."""
    token += "-2"
    redactor = Redactor({})
    redactor.exchange(line(headers=[("authorization", f"Bearer {token}")]))
    later = redactor.exchange(line({"note": f"I am {token}"})).decode()
    assert '"I am <redacted:1>"' in later


def test_what_was_redacted_stays_as_it_was() -> None:
    """A trace that went into a capture and comes back keeps its tokens, and which of them are equal."""
    sent = {"a": "<redacted:2>", "b": "<redacted:1>", "password": "<redacted:3>"}
    written = redacted(sent, headers=[("authorization", "Bearer <redacted:2>"), ("cookie", "a=<redacted:1>")])
    assert written["body"]["json"] == sent
    assert written["headers"] == [["authorization", "Bearer <redacted:2>"], ["cookie", "a=<redacted:1>"]]


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


def test_the_password_in_basic_credentials() -> None:
    """It is a secret of its own, known wherever it stands."""
    credentials = base64.b64encode(b"user:hunter2-of-mine").decode()
    written = redacted({"a": "it is hunter2-of-mine"}, headers=[("authorization", f"Basic {credentials}")])
    assert written["body"]["json"]["a"].startswith("it is <redacted:")
    assert credentials not in str(written)


def test_secrets_that_a_name_elsewhere_shows() -> None:
    """In lists, in objects, as numbers, in pairs, and with the name in a member of its own."""
    document = {
        "password": ["one", {"a": "kept"}],
        "passphrase": {"value": "two", "hint": "kept"},
        "passcode": 8811223344,
        "headers": [["Authorization", "Bearer x"], ["Accept", "kept"]],
        "env": [{"name": "API_KEY", "value": "five"}, {"key": "MODE", "value": "kept"}],
        "secret": ["six", 7],
    }
    written = body_json(document)
    assert written == {
        "password": ["one", {"a": "kept"}],
        "passphrase": {"value": "<redacted:1>", "hint": "kept"},
        "passcode": "<redacted:2>",
        "headers": [["Authorization", "<redacted:3>"], ["Accept", "kept"]],
        "env": [{"name": "API_KEY", "value": "<redacted:4>"}, {"key": "MODE", "value": "kept"}],
        "secret": ["<redacted:5>", "<redacted:6>"],
    }


def test_names_without_values_stay() -> None:
    """Tags, schemas and settings speak of secrets and hold none."""
    document = {
        "tags": ["password", "rotation2026"],
        "pairs": [["password", "reset for the third time"]],
        "properties": {"token": {"type": "string", "description": "what to send"}},
        "required": ["password", "api_key"],
        "attributes": [{"name": "password", "value": "must be long"}],
        "fetch": {"credentials": "include", "auth": "none"},
        "options": {"password": None, "token": False},
    }
    assert body_json(document) == document


def test_a_form_as_a_body() -> None:
    """The first field of a form is one like the others, with a type and without."""
    for media_type in ("application/x-www-form-urlencoded; charset=utf-8", None):
        exchange = line()
        exchange["request"]["body"] = {"text": "password=abc&a=1&token=abc", "media_type": media_type}
        written = json.loads(Redactor({}).exchange(exchange))["request"]["body"]["text"]
        assert written == "password=<redacted:1>&a=1&token=<redacted:1>"
    prose = {"text": "password=abc", "media_type": "text/plain"}
    exchange["request"]["body"] = prose
    assert json.loads(Redactor({}).exchange(exchange))["request"]["body"] == prose


def test_the_path() -> None:
    """Parameters of its segments, and secrets that hide behind percent signs."""
    assert redacted(path="/x;token=abc/y%20z")["path"] == "/x;token=<redacted:1>/y%20z"
    assert redacted(path="/x/sig%5Fsk%5F0123456789%2F1")["path"] == "/x/<redacted:1>%2F1"


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


def test_the_user_name_in_agents_dir() -> None:
    """GET /health shows a folder of the user; the name is taken out, the rest stays."""
    response = {
        "status": 200,
        "headers": [],
        "body": {"json": {"agentsDir": "/home/alice/.agents", "cwd": "/home/alice"}},
    }
    written = json.loads(Redactor({}).exchange(line(response=response)))["response"]["body"]["json"]
    assert written == {"agentsDir": "/home/<redacted:1>/.agents", "cwd": "/home/alice"}


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


def test_the_header_names_canaries() -> None:
    """`declared.canaries` tells which token stands for which canary; the target is running text."""
    header = Header(target="pi sig_sk_0123456789", declared=Declared(agents=("a",)))
    shown = Redactor({"NAME": "the value of it"}).header(header)
    assert shown.declared == Declared(agents=("a",), canaries={"<redacted:1>": "NAME"})
    assert shown.target == "pi <redacted:2>"


def test_a_canary_of_digits() -> None:
    """A canary that JSON can write as a number is found there too."""
    assert body_json({"pin": 12345678, "n": 1.5, "t": True}, canaries={"PIN": "12345678"}) == {
        "pin": "<redacted:1>",
        "n": 1.5,
        "t": True,
    }


def test_a_canary_is_found_in_every_part() -> None:
    """Method, path, query, headers, body, answer, note of an error, parameters of a fault."""
    canary = "Canary-Value-42"
    response = {"status": 200, "headers": [("x-a", canary)], "body": {"text": canary, "media_type": canary}}
    exchange = line(
        *({canary: [canary]},),
        method=f"X-{canary}",
        path=f"/{canary}",
        query=[(canary, canary)],
        headers=[("host", canary), (canary, "x")],
        response=response,
    )
    exchange["error"] = {"kind": "upstream_reset", "note": canary}
    exchange["fault"] = {"kind": "shape", "body": {"x": canary}}
    written = Redactor({"C": canary}).exchange(exchange).decode()
    assert canary not in written
    assert written.count("<redacted:1>") == 13


canary_values = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=30).filter(lambda s: s.strip())
# Without these characters nothing can be named or shaped like a secret.
harmless_text = st.text(st.characters(exclude_characters="aeoAEO_-.@:="), max_size=20)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | harmless_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(harmless_text, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def hidden(draw: st.DrawFn) -> tuple[str, Any]:
    """A canary, and a document that holds it in one of its forms, somewhere deep."""
    secret = draw(canary_values)
    escaped = json.dumps(secret)[1:-1]
    form = draw(
        st.sampled_from(
            [
                *(secret, escaped, json.dumps(escaped)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]),
                *(quote(secret), quote(secret, safe=""), quote_plus(secret)),
            ]
        )
    )
    value: Any = draw(st.text(max_size=5)) + form + draw(st.text(max_size=5))
    for _ in range(draw(st.integers(0, 4))):
        value = draw(st.sampled_from([[value], {"k": value}, {"a": 1, "z": [value]}]))
    return secret, value if draw(st.booleans()) or not isinstance(value, str) else {value: 1}


@given(hidden())
def test_no_form_of_a_canary_is_left(case: tuple[str, Any]) -> None:
    """Raw, escaped or URL-encoded, in values and names: the line does not hold it."""
    secret, document = case
    # Text that the frame of the line or a token holds anyway proves nothing.
    frame = encode(line({"<redacted:1>": 1})).decode()
    for form in (secret, json.dumps(secret)[1:-1]):
        if form in frame:
            return
    written = Redactor({"C": secret}).exchange(line(document)).decode()
    assert secret not in json.dumps(json.loads(written)["request"]["body"], ensure_ascii=False)
    assert quote(secret, safe="") not in written or quote(secret, safe="").isalnum()
    assert "<redacted:1>" in written


@given(canary_values, st.binary(max_size=10), st.binary(max_size=10))
def test_no_base64_of_a_canary_is_left(secret: str, before: bytes, after: bytes) -> None:
    """In the middle of encoded bytes, at any offset, a canary is recognised."""
    encoded = base64.b64encode(before + secret.encode() + after).decode()
    assert "<redacted:1>" in Redactor({"C": secret}).exchange(line({"data": encoded})).decode()


@given(st.sampled_from(SHAPED), documents)
def test_equal_secrets_have_equal_tokens(secret: str, document: Any) -> None:
    """The same secret in two exchanges, in different places, is the same token; another one is not."""
    redactor = Redactor({})
    first = redactor.exchange(line({"a": document, "b": f"x {secret} y"})).decode()
    second = redactor.exchange(line(headers=[("x-note", secret)], query=[("q", "sig_sk_another_one_12")])).decode()
    token = first[first.index("x <redacted:") + 2 :].partition(">")[0] + ">"
    assert f'["x-note","{token}"]' in second
    assert second.count("<redacted:") == 2
    assert second.count(token) == 1


@given(documents)
@settings(max_examples=200)
def test_documents_without_secrets_stay_as_they_are(document: Any) -> None:
    """A line that holds no secret is written as it is."""
    assert Redactor({"C": "not in there at all"}).exchange(line(document)) == encode(line(document))


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
