"""Secrets by the name of the place where they stand: members, headers, queries, forms, paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from signet_recording_proxy.redaction.redactor import Redactor
from tests.recording_proxy.redaction.lines import body_json, line, redacted


def test_members_that_are_named_like_secrets() -> None:
    """String values of such members are secrets; blanks, short tokens and names of secrets are not."""
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


@pytest.mark.parametrize(
    "path", ["/api/%73ecrets/NAME", "/%61pi/secrets/NAME", "//api/secrets/NAME", "/api/secrets%2FNAME"]
)
def test_the_value_of_a_stored_secret_under_any_spelling_of_its_path(path: str) -> None:
    """The daemon decodes what is percent-encoded, and so do we before we look."""
    exchange = line(path=path)
    exchange["request"]["body"] = {"json": {"value": "plain words"}}
    assert Redactor({}).unsuspected(line(path=path)) is None
    assert b"plain words" not in Redactor({}).exchange(exchange)


IDS = [f"{begins}-0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0" for begins in ("sdk", "api")] + [
    f"key-{'0b1c2d3e' * 4}", f"SK{'0b1c2d3e' * 4}", f"{'0b1c2d3e' * 4}-us1", "tskey-dev-2026-05-04-session",
]  # fmt: skip


@pytest.mark.parametrize("name", ["sessionKey", "agentId", "idempotencyKey", "project"])
@pytest.mark.parametrize("value", IDS)
def test_what_says_who_calls_stays_readable(name: str, value: str) -> None:
    """Though some issuer's tokens look like it: under another name it is taken for one."""
    assert body_json({name: value}) == {name: value}
    assert body_json({"note": value}) == {"note": "<redacted:1>"}


@pytest.mark.parametrize("value", ["sk-learn-experiments-2026", "sk-1234-fix-billing-export", "sk-learn-reviewer-2026"])
def test_names_that_begin_like_a_key(value: str) -> None:
    """Words and numbers between hyphens are no key."""
    assert body_json({"note": f"in {value}"}) == {"note": f"in {value}"}


def test_unmistakable_tokens_are_taken_out_wherever_they_stand() -> None:
    """A token that was put in the place of a key is a leak, and SIG-HTTP-009 finds it."""
    assert body_json({"sessionKey": "sig_sk_0123456789abcdef"}) == {"sessionKey": "<redacted:1>"}


@pytest.mark.parametrize("value", ["$2b$12$eImiTXuWVxfM37uY4JANjQ", "$tr0ngPassw0rd", "***REAL9", "[REDACTED]not9"])
def test_secrets_that_begin_as_a_variable_does(value: str) -> None:
    """Only what is a variable, or redacted, as a whole holds no secret."""
    assert body_json({"password": value}) == {"password": "<redacted:1>"}


@pytest.mark.parametrize(
    "value", ["$DB_PASSWORD", "${{ secrets.DB }}", "$(cat file)", "$env:DB_PASS", "****", "$password1"]
)
def test_variables_are_no_secrets(value: str) -> None:
    """Nor is what others wrote in the place of one."""
    assert body_json({"password": value}) == {"password": value}


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
        ("set-cookie", "a=abc; Expires=Wed, 21 Oct 2026 07:28:00 GMT, b=abc; Secure"),
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
        "a=<redacted:1>; Expires=Wed, 21 Oct 2026 07:28:00 GMT, b=<redacted:1>; Secure",
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


def test_secrets_that_a_name_elsewhere_shows() -> None:
    """In lists, in objects, as numbers, in pairs, and with the name in a member of its own."""
    document = {
        "password": ["one", {"a": "kept"}],
        "passphrase": {"value": "two", "hint": "kept"},
        "passcode": 8811223344,
        "headers": [["Authorization", "Bearer x"], ["Accept", "kept"]],
        "env": [{"name": "API_KEY", "value": "five"}, {"key": "MODE", "value": "kept"}],
        "secret": ["six", 7],
        "in": {"name": "API_KEY", "value": "eight"},
    }
    written = body_json(document)
    assert written == {
        "password": ["one", {"a": "kept"}],
        "passphrase": {"value": "<redacted:1>", "hint": "kept"},
        "passcode": "<redacted:2>",
        "headers": [["Authorization", "<redacted:3>"], ["Accept", "kept"]],
        "env": [{"name": "API_KEY", "value": "<redacted:4>"}, {"key": "MODE", "value": "kept"}],
        "secret": ["<redacted:5>", "<redacted:6>"],
        "in": {"name": "API_KEY", "value": "<redacted:7>"},
    }


def test_the_values_between_which_a_secret_changes() -> None:
    """One word each; what else is said of a secret stays."""
    document = {
        "password": {"current": "abcd", "new": "efgh", "id": "p-1", "minimum": 8},
        "apiKey": {"old": "was revoked", "previous": "abcd", "name": "X-Api-Key"},
        "clientSecret": "A1BCDEFGHIJ234KLMNOP",
    }
    assert body_json(document) == {
        "password": {"current": "<redacted:1>", "new": "<redacted:2>", "id": "p-1", "minimum": 8},
        "apiKey": {"old": "was revoked", "previous": "<redacted:1>", "name": "X-Api-Key"},
        "clientSecret": "<redacted:3>",
    }


def test_the_private_members_of_a_key() -> None:
    """They say what they are by the type of the key beside them."""
    key = {"kty": "OKP", "crv": "Ed25519", "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A", "x": "11qYAYKxCrfVS"}
    assert body_json({"keys": [key], "d": "kept"}) == {"keys": [{**key, "d": "<redacted:1>"}], "d": "kept"}


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


def test_the_user_name_in_agents_dir() -> None:
    """GET /health shows a folder of the user; the name is taken out, the rest stays."""
    response = {
        "status": 200,
        "headers": [],
        "body": {"json": {"agentsDir": "/home/alice/.agents", "cwd": "/home/alice"}},
    }
    written = json.loads(Redactor({}).exchange(line(response=response)))["response"]["body"]["json"]
    assert written == {"agentsDir": "/home/<redacted:1>/.agents", "cwd": "/home/alice"}
