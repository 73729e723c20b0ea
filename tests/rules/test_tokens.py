"""Facts about token-shaped texts: where one is a breach, where a person may have written it, and which is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import Judgement, Verdict
from tests.support.case_traces import build

TOKEN = "sig_sk_0123456789abcdef"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r"


def token_judgement(folder: Path, body: Any = None, **request: Any) -> Judgement:
    """SIG-HTTP-009 over one prompt."""
    sent = {"method": "POST", "path": "/api/hooks/user-prompt-submit", "body": body, **request}
    trace = build(folder / "trace.jsonl", [{"request": sent}], shared=False)
    return judge(trace, frozenset({"SIG-HTTP-009"})).judgements["SIG-HTTP-009"]


BODIES: Mapping[str, tuple[str, Any, str]] = {
    "a member": ("FAIL", {"project": TOKEN}, "/project of the body"),
    "a member whose name is a token": ("FAIL", {TOKEN: "x"}, f"/{TOKEN} of the body"),
    "what a person wrote": ("INCONCLUSIVE", {"userMessage": TOKEN}, "/userMessage of the body"),
    "a list that a person wrote": ("INCONCLUSIVE", {"content": [TOKEN]}, "/content/0 of the body"),
    "a part that a person wrote": ("INCONCLUSIVE", {"content": {"aaa": TOKEN}}, "/content/aaa of the body"),
    "another part": ("INCONCLUSIVE", {"content": {"zzz": TOKEN}}, "/content/zzz of the body"),
    "the name of such a part": ("FAIL", {"content": {TOKEN: "x"}}, f"/content/{TOKEN} of the body"),
    "a member before what a person wrote": ("FAIL", {"project": TOKEN, "userMessage": TOKEN}, "/project of the body"),
    "a member after what a person wrote": ("FAIL", {"userMessage": TOKEN, "project": TOKEN}, "/project of the body"),
    "the first of two that a person wrote": ("INCONCLUSIVE", {"content": [TOKEN, "x", TOKEN]}, "of the body"),
    "a tool's reason": ("INCONCLUSIVE", {"reason": f"it holds {TOKEN}"}, "/reason of the body"),
    "a tool's command": ("INCONCLUSIVE", {"command": f"curl -H 'A: {TOKEN}'"}, "/command of the body"),
    "what an MCP tool is given": ("INCONCLUSIVE", {"params": {"arguments": {"a": TOKEN}}}, "/params/arguments/a of"),
    "what a marketplace tool is given": ("INCONCLUSIVE", {"args": {"a": [TOKEN]}}, "/args/a/0 of the body"),
    "a web token": ("FAIL", {"project": f"at {JWT}"}, "/project of the body"),
    "a web token after half of one": ("FAIL", {"project": f"eyJhbGciOiJIUzI1NiJ9 {JWT}"}, "/project of the body"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_token_in_a_body(name: str, tmp_path: Path) -> None:
    """Breaches come before what a person or a model may have written, and the place is told."""
    verdict, body, place = BODIES[name]
    judgement = token_judgement(tmp_path, body, path="/api/secrets/exec")
    assert (judgement.verdict, judgement.message) == (Verdict(verdict), judgement.message)
    assert place in judgement.message


def test_a_hook_has_no_tool(tmp_path: Path) -> None:
    """The reason of an end is the connector's own word."""
    assert token_judgement(tmp_path, {"reason": TOKEN}).verdict is Verdict.FAIL


@pytest.mark.parametrize(("name", "verdict"), [("reason", "INCONCLUSIVE"), ("id", "FAIL")])
def test_a_token_in_a_parameter(name: str, verdict: str, tmp_path: Path) -> None:
    """A model gives a reason, in a query too."""
    sent = {"method": "DELETE", "path": "/api/memory/m-1", "query": {name: TOKEN}}
    assert token_judgement(tmp_path, **sent).verdict is Verdict(verdict)


@pytest.mark.parametrize("half", ["eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0", "eyJ.a.b"])
def test_a_part_of_a_web_token_is_none(half: str, tmp_path: Path) -> None:
    """It has three parts of ten characters and more."""
    assert token_judgement(tmp_path, {"project": half}).verdict is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize("raw", [{"text": f"at {TOKEN}", "media_type": "text/plain"}, {"json": f"at {TOKEN}"}])
def test_a_body_that_is_a_text(raw: Any, tmp_path: Path) -> None:
    """It has no member to be named."""
    judgement = token_judgement(tmp_path, raw_body=raw)
    assert (judgement.verdict, judgement.findings[0].fold) == (Verdict.FAIL, "the body")


def test_a_token_in_the_path_is_told_once(tmp_path: Path) -> None:
    """Percent-encoded or not."""
    for path in (f"/api/hooks/{TOKEN}", f"/api/hooks/{TOKEN.replace('_', '%5F')}"):
        assert len(token_judgement(tmp_path, path=path).findings) == 1


LONG = "n" * 30 + "-" + "m" * 60


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"query": {LONG: TOKEN}}, f"the query parameter {LONG[:40]}"),
        ({"headers": {LONG.upper(): TOKEN}}, f"the header {LONG[:40]}"),
        ({"body": {LONG: TOKEN}}, f"/{LONG[:79]} of the body"),
    ],
    ids=["query", "header", "body"],
)
def test_beginning_of_a_token_and_of_its_place_is_shown(request_: Any, place: str, tmp_path: Path) -> None:
    """Of the token twelve characters, of the name of its place as many as a line holds."""
    (finding,) = token_judgement(tmp_path, **request_).findings
    assert finding.received == "sig_sk_01234…"
    assert finding.message == f"a token outside the Authorization header, in {place}"
    assert finding.fold == place


@pytest.mark.parametrize(
    ("authorization", "shown"),
    [("Basic dXNlcjpwYXNz", "Basic …"), (f"{LONG} x", f"{LONG[:20]} …"), ("Bearer  two", "Bearer …"), ("", " …")],
)
def test_kind_of_an_authorization_is_shown_alone(authorization: str, shown: str, tmp_path: Path) -> None:
    """What follows it may be a password."""
    (finding,) = token_judgement(tmp_path, {}, headers={"authorization": authorization}).findings
    assert (finding.message, finding.received) == ("Authorization is not `Bearer <token>`", shown)


@pytest.mark.parametrize(
    ("headers", "verdict"),
    [
        ([["authorization", "Bearer abc"]], Verdict.PASS),
        ([["authorization", "Bearer abc"], ["authorization", "abc"]], Verdict.FAIL),
        ([["authorization", "abc"], ["authorization", "Bearer abc"]], Verdict.FAIL),
        ([["cookie", "<redacted:1>"]], Verdict.NOT_APPLICABLE),
        ([["x-signet-agent-id", "<redacted:1>"]], Verdict.FAIL),
        ([["X-API-Key", "<redacted:1>"]], Verdict.FAIL),
        ([["cookie", "<redacted:1>"], ["authorization", "Bearer <redacted:1>"]], Verdict.FAIL),
        ([["cookie", "<redacted:1>"], ["authorization", "Bearer <redacted:2>"]], Verdict.PASS),
        ([["cookie", TOKEN]], Verdict.FAIL),
        ([["proxy-authorization", "Basic <redacted:1>"]], Verdict.NOT_APPLICABLE),
        ([["proxy-authorization", "Bearer <redacted:1>"], ["authorization", "Bearer <redacted:1>"]], Verdict.FAIL),
        ([["proxy-authorization", f"Bearer {TOKEN}"]], Verdict.FAIL),
    ],
)
def test_token_in_a_header(headers: list[list[str]], verdict: Verdict, tmp_path: Path) -> None:
    """Authorization is its place; a redacted secret elsewhere is the token where it tells who calls, or is the same."""
    assert token_judgement(tmp_path, {}, headers=headers).verdict is verdict


CUT = {"cut": True, "size": 90, "sha256": "0" * 64, "text": f"at {TOKEN}", "media_type": "text/plain"}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"secrets": {"A_TOKEN": "<redacted:3>"}, "f": 1e400}', Verdict.INCONCLUSIVE),
        (f'{{"a": "<redacted:3>", "b": "{TOKEN}"}}', Verdict.FAIL),
        ('{"a": "<redacted:3>", "b": "<redacted:4>"}', Verdict.FAIL),
    ],
)
@pytest.mark.parametrize("said", [[], [{"mark": "step", "data": {"step": "tool", "session": "s1", "text": "hello"}}]])
def test_a_redaction_in_a_body_that_is_no_json(said: list[Any], text: str, verdict: Verdict, tmp_path: Path) -> None:
    """It may stand for any word beside a secret's name: it proves a token only where it is what Authorization holds."""
    sent = {"method": "POST", "path": "/api/secrets/exec", "raw_body": {"text": text, "media_type": None}}
    sent["headers"] = {"authorization": "Bearer <redacted:4>"}
    trace = build(tmp_path / "trace.jsonl", [*said, {"request": sent}], shared=False)
    assert judge(trace, frozenset({"SIG-HTTP-009"})).judgements["SIG-HTTP-009"].verdict is verdict


@pytest.mark.parametrize(
    ("request_", "pointer"),
    [
        ({"body": {"project": TOKEN}}, "/request/body/json/project"),
        ({"raw_body": {"text": TOKEN, "media_type": "text/plain"}}, "/request/body/text"),
        ({"raw_body": CUT}, "/request/body/text"),
        ({"path": f"/api/hooks/{TOKEN}"}, "/request/path"),
        ({"query": {"project": TOKEN}}, "/request/query"),
        ({"headers": {"accept": TOKEN}}, "/request/headers"),
    ],
)
def test_finding_points_at_the_token(request_: Any, pointer: str, tmp_path: Path) -> None:
    """At the member of the line that holds it."""
    (finding,) = token_judgement(tmp_path, **request_).findings
    assert finding.pointer == pointer


def test_web_token_is_shown_from_its_beginning(tmp_path: Path) -> None:
    """So that a reader knows it again."""
    (finding,) = token_judgement(tmp_path, {"project": f"at {JWT}"}).findings
    assert finding.received == "eyJhbGciOiJI…"


def test_other_headers_are_no_authorization(tmp_path: Path) -> None:
    """Whatever they hold, and wherever they sort."""
    headers = [["accept", "*/*"], ["authorization", "Bearer abc"], ["x-note", "abc"]]
    assert token_judgement(tmp_path, {}, headers=headers).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ({"text": "hello"}, Verdict.FAIL),
        ({"text": TOKEN}, Verdict.INCONCLUSIVE),
        ({"reply": f"It is {TOKEN}."}, Verdict.INCONCLUSIVE),
        ({"input": {"command": [TOKEN]}}, Verdict.INCONCLUSIVE),
    ],
)
def test_token_that_nobody_said(said: Any, verdict: Verdict, tmp_path: Path) -> None:
    """Where marks tell what was said, in a text, a reply or what a tool was given, a token in a prompt is a leak."""
    step = {"mark": "step", "data": {"step": "prompt", "session": "s1", **said}}
    sent = {"method": "POST", "path": "/api/hooks/user-prompt-submit", "body": {"userMessage": TOKEN}}
    trace = build(tmp_path / "trace.jsonl", [step, {"request": sent}], shared=False)
    assert judge(trace, frozenset({"SIG-HTTP-009"})).judgements["SIG-HTTP-009"].verdict is verdict


@pytest.mark.parametrize(
    ("text", "verdict"), [("my key is <redacted:3>", Verdict.INCONCLUSIVE), ("hello", Verdict.FAIL)]
)
def test_a_secret_that_was_said_has_another_token_where_it_is_escaped(
    text: str, verdict: Verdict, tmp_path: Path
) -> None:
    """In the lines of a transcript of JSON, say: whose it is, nobody can tell then."""
    step = {"mark": "step", "data": {"step": "prompt", "session": "s1", "text": text}}
    sent = {"method": "POST", "path": "/api/hooks/session-end", "body": {"transcript": "User: <redacted:4>"}}
    trace = build(tmp_path / "trace.jsonl", [step, {"request": sent}], shared=False)
    assert judge(trace, frozenset({"SIG-HTTP-009"})).judgements["SIG-HTTP-009"].verdict is verdict


@pytest.mark.parametrize(
    ("said", "token", "verdict"),
    [
        ({"arguments": {"content": "hello"}}, "<redacted:2>", Verdict.FAIL),
        ({"tool": "memory_get", "step": "tool"}, "<redacted:2>", Verdict.FAIL),
        ({"text": "it is <redacted:2>"}, "<redacted:2>", Verdict.INCONCLUSIVE),
        ({"text": "it is <redacted:3>"}, "<redacted:2>", Verdict.INCONCLUSIVE),
        ({"arguments": {"content": "hello"}}, "<redacted:3>", Verdict.INCONCLUSIVE),
        ({"tool": "memory_get", "step": "tool"}, "<redacted:3>", Verdict.INCONCLUSIVE),
    ],
)
def test_token_that_the_kit_gave_is_nobody_elses(said: Any, token: str, verdict: Verdict, tmp_path: Path) -> None:
    """Behind the name of a member, and where it is not known what a tool was given, another secret is undecided."""
    step = {"mark": "step", "data": {"step": "prompt", "session": "s1", **said}}
    transcript = f'{{"role": "user", "content": "{token}"}}'
    sent = {"method": "POST", "path": "/api/hooks/session-end", "body": {"transcript": transcript}}
    header = {"declared": {"token": True, "canaries": {"<redacted:2>": "SIGNET_CONFORMANCE_TOKEN"}}}
    trace = build(tmp_path / "trace.jsonl", [step, {"request": sent}], header, shared=False)
    assert judge(trace, frozenset({"SIG-HTTP-009"})).judgements["SIG-HTTP-009"].verdict is verdict
