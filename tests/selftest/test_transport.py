"""Facts about the changes, each through the mutating transport to a recording server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from signet_conformance.contracts import Answer
from signet_conformance.contracts.fakes import END, FORGET, PROMPT, RECALL, START
from signet_conformance.selftest.transport import MutatingTransport
from signet_reference_harness.daemon_client.wire import transport_to

from .conftest import GatedDaemon

JOB = "/api/secrets/exec/job-1"
HOOK: Mapping[str, Any] = {"harness": "reference", "sessionKey": "k-1", "agentId": "atlas", "project": "/srv/atlas"}
Call = tuple[str, str, Any]


def send(server: GatedDaemon, change: Mapping[str, Any], *calls: Call) -> list[httpx.Response | Exception]:
    """Make calls (method, path with query, body) one after the other; what the connector hears of each."""

    async def run() -> list[httpx.Response | Exception]:
        heard: list[httpx.Response | Exception] = []
        transport = MutatingTransport(change, transport_to(server.origin), "s3cret-value")
        headers = {"authorization": "Bearer tok-1", "x-signet-runtime-path": "plugin"}
        async with httpx.AsyncClient(transport=transport, base_url=server.origin, headers=headers) as client:
            for method, path, body in calls:
                try:
                    heard.append(await client.request(method, path, json=body))
                except httpx.HTTPError as error:
                    heard.append(error)
        return heard

    return asyncio.run(run())


def test_without_a_change_nothing_changes(server: GatedDaemon) -> None:
    """Method, path, query, headers, body and answer pass as they are."""
    server.always[START] = Answer({"inject": "x"})
    (heard,) = send(server, {}, ("POST", f"{START}?a=%20b", HOOK))
    (request,) = server.requests
    assert (request.method, request.path, request.query, request.body) == ("POST", START, {"a": " b"}, HOOK)
    assert request.headers["authorization"] == "Bearer tok-1"
    assert isinstance(heard, httpx.Response)
    assert (heard.status_code, heard.json()) == (200, {"inject": "x"})


EDITS = [
    ({"remove": ["/harness"]}, {k: v for k, v in HOOK.items() if k != "harness"}),
    ({"set": {"/limit": 5}}, {**HOOK, "limit": 5}),
    ({"replace": {"/project": "/tmp/x", "/cwd": "/tmp/x"}}, {**HOOK, "project": "/tmp/x"}),
    ({"rename": {"/agentId": "/agent_id"}}, {**{k: v for k, v in HOOK.items() if k != "agentId"}, "agent_id": "atlas"}),
    ({"body": []}, []),
    ({"body": {"key": "{{key}}", "agent": "{{agent}}", "unknown": "{{nothing}}"}}, None),
    ({"set": {"/sessionKey": "{{value}}-2"}}, {**HOOK, "sessionKey": "k-1-2"}),
    ({"set": {"/token": "{{token}}", "/secret": "it is {{secret}}"}}, None),
]


@pytest.mark.parametrize(("edit", "body"), EDITS)
def test_an_edit_changes_the_body(server: GatedDaemon, edit: dict[str, Any], body: Any) -> None:
    """Members are taken out, set, replaced where they are, and moved; a body is replaced as a whole."""
    send(server, {"do": "edit", "on": "session-start", **edit}, ("POST", START, HOOK), ("POST", START, HOOK))
    expected = {
        "{{key}}": {"key": "k-1", "agent": "atlas", "unknown": "{{nothing}}"},
        "{{token}}": {**HOOK, "token": "tok-1", "secret": "it is s3cret-value"},
    }
    wanted = next((answer for name, answer in expected.items() if name in str(edit)), body)
    assert server.requests[-1].body == wanted


def test_an_edit_changes_method_path_query_and_headers(server: GatedDaemon) -> None:
    """What is beside the body can be changed, and a header be taken out."""
    change = {
        "do": "edit", "on": "memory-recall", "method": "PUT", "path": "{{path}}/", "query": {"token": "{{token}}"},
        "remove_query": ["old"], "headers": {"x-signet-runtime-path": None, "x-signet-agent-id": "{{agent}}"},
    }  # fmt: skip
    call = ("POST", f"{RECALL}?old=1", {"query": "q", "sessionKey": "k-1", "agentId": "atlas"})
    send(server, change, call, call)
    request = server.requests[-1]
    assert (request.method, request.path, request.query) == ("PUT", f"{RECALL}/", {"token": "tok-1"})
    assert "x-signet-runtime-path" not in request.headers
    assert request.headers["x-signet-agent-id"] == "atlas"


def test_a_change_is_for_one_operation_one_occurrence_one_session(server: GatedDaemon) -> None:
    """`on` names operations, `nth` counts what they match, `session` counts sessions by their first requests."""
    other = {**HOOK, "sessionKey": "k-2"}
    change = {"do": "edit", "on": "user-prompt-submit", "session": 2, "nth": 2, "set": {"/changed": True}}
    bodies = [HOOK, other, HOOK, other, other]
    send(server, change, *(("POST", PROMPT, body) for body in bodies), ("POST", END, other))
    assert ["changed" in request.body for request in server.requests] == [False, False, False, True, False, False]


def test_the_other_session_and_the_request_before_are_known(server: GatedDaemon) -> None:
    """A placeholder may name another session's agent and what the operation's last request held."""
    other = {**HOOK, "sessionKey": "k-2", "agentId": "beacon"}
    change = {"do": "edit", "on": "user-prompt-submit", "nth": 2}
    sets = {"/agentId": "{{other_agent}}", "/userMessage": "{{previous}}", "/other": "{{other_key}}"}
    texts = [{**HOOK, "userMessage": "one"}, {**HOOK, "userMessage": "two"}]
    send(server, {**change, "set": sets}, ("POST", START, other), *(("POST", PROMPT, text) for text in texts))
    assert server.requests[-1].body == {**HOOK, "agentId": "beacon", "userMessage": "one", "other": "k-2"}


def test_injected_text_is_known(server: GatedDaemon) -> None:
    """The last text that an answer injected can be put into a later request."""
    server.always[START] = Answer({"inject": "[memory] Friday"})
    change = {"do": "edit", "on": "user-prompt-submit", "set": {"/userMessage": "{{inject}} {{value}}"}}
    send(server, change, ("POST", START, HOOK), ("POST", PROMPT, {**HOOK, "userMessage": "when?"}))
    assert server.requests[-1].body["userMessage"] == "[memory] Friday when?"


def test_turns_are_swapped(server: GatedDaemon) -> None:
    """A transcript's replies come to stand before their prompts."""
    lines = ['{"role": "user", "content": "a"}', '{"role": "assistant", "content": "b"}']
    change = {"do": "edit", "on": "session-end", "rewrite": {"/transcript": "swapped_turns"}}
    send(server, change, ("POST", END, {**HOOK, "transcript": "\n".join(lines)}))
    assert server.requests[0].body["transcript"].split("\n") == lines[::-1]


def test_an_answer_is_changed_on_its_way_back(server: GatedDaemon) -> None:
    """Only the answer that is waited for is changed: its status, its members, or all of it."""
    server.always[START] = Answer({"error": "claimed"}, 409)
    change = {"do": "answer", "on": "*", "answered": 409, "status": 200, "remove": ["/error"], "set": {"/inject": ""}}
    heard = send(server, change, ("POST", START, HOOK), ("POST", PROMPT, HOOK))
    assert [(reply.status_code, reply.json()) for reply in heard if isinstance(reply, httpx.Response)] == [
        (200, {"inject": ""}),
        (200, {}),
    ]


def test_a_text_answer(server: GatedDaemon) -> None:
    """An answer can be plain text."""
    (heard,) = send(server, {"do": "answer", "on": "*", "text": "oops"}, ("POST", START, HOOK))
    assert isinstance(heard, httpx.Response)
    assert (heard.text, heard.headers["content-type"]) == ("oops", "text/plain")


def test_a_dropped_request_is_never_sent(server: GatedDaemon) -> None:
    """The connector is told what the change says, or that nobody listens."""
    (told,) = send(server, {"do": "drop", "on": "session-start", "told": {"inject": ""}}, ("POST", START, HOOK))
    (away,) = send(server, {"do": "drop", "on": "session-start"}, ("POST", START, HOOK))
    assert isinstance(told, httpx.Response)
    assert told.json() == {"inject": ""}
    assert isinstance(away, httpx.ConnectError)
    assert server.requests == []


def test_a_request_is_repeated(server: GatedDaemon) -> None:
    """The same request is sent again, one after the other or side by side, after the answer that is waited for."""
    repeat = {"do": "repeat", "on": "session-start", "times": 2}
    send(server, repeat, ("POST", START, HOOK))
    send(server, {**repeat, "answered": 503}, ("POST", START, HOOK))
    send(server, {**repeat, "at_once": True}, ("POST", START, HOOK))
    assert [request.body for request in server.requests] == [HOOK] * 7


def test_a_repeat_may_wait_for_a_member(server: GatedDaemon) -> None:
    """What is waited for may be one of several values of a member."""
    change = {"do": "repeat", "on": "secrets-exec-job", "answered": {"/status": ["completed", "failed"]}}
    server.always[JOB] = Answer({"status": "running"})
    send(server, change, ("GET", JOB, None))
    server.always[JOB] = Answer({"status": "failed"})
    send(server, change, ("GET", JOB, None))
    assert server.paths() == ["job-1"] * 3


@pytest.mark.parametrize(
    ("where", "order"), [("before", ["session-end", "session-start"]), ("after", ["session-start", "session-end"])]
)
def test_a_request_is_inserted(server: GatedDaemon, where: str, order: list[str]) -> None:
    """One more request is made from the one it stands beside."""
    change = {"do": "insert", "on": "session-start", "where": where, "path": END, "set": {"/reason": "clear"}}
    send(server, change, ("POST", START, HOOK))
    assert server.paths() == order
    assert [request.body for request in server.requests if request.path == END] == [{**HOOK, "reason": "clear"}]


def test_an_inserted_request_may_have_no_body(server: GatedDaemon) -> None:
    """A body of null is not sent."""
    change = {"do": "insert", "on": "*", "where": "after", "method": "GET", "path": "/api/status", "body": None}
    send(server, change, ("POST", START, HOOK))
    assert (server.requests[1].method, server.requests[1].body) == ("GET", None)


def test_a_request_is_deferred(server: GatedDaemon) -> None:
    """A request is held back until another one was answered; the connector is told something meanwhile."""
    change = {"do": "defer", "on": "user-prompt-submit", "until": "memory-recall", "told": {"inject": "later"}}
    recall = ("POST", RECALL, {"query": "q"})
    heard = send(server, change, ("POST", PROMPT, HOOK), ("POST", START, HOOK), recall, recall)
    assert isinstance(heard[0], httpx.Response)
    assert heard[0].json() == {"inject": "later"}
    assert server.paths() == ["session-start", "recall", "user-prompt-submit", "recall"]


def test_a_mutant_without_deadline_waits_for_its_answer(server: GatedDaemon) -> None:
    """A caller's deadline does not end the exchange."""
    server.always[START] = Answer({"late": True})
    server.gate.clear()

    async def run() -> Any:
        transport = MutatingTransport({"do": "wait", "on": "session-start"}, transport_to(server.origin))
        async with httpx.AsyncClient(transport=transport, base_url=server.origin, timeout=None) as client:  # noqa: S113 - what is tested
            waiting = asyncio.ensure_future(client.post(START, json=HOOK))
            await asyncio.to_thread(server.arrived.wait, 30)
            waiting.cancel()
            await asyncio.sleep(0)
            server.gate.set()
            return (await waiting).json()

    assert asyncio.run(run()) == {"late": True}


SILENCES = [
    ("failed", Answer({"error": "x"}, 500), Answer({"error": "x"}, 400)),
    ("unreadable", Answer(text="<!doctype html>"), Answer({"error": "x"}, 500)),
    ("odd", Answer({"inject": 42}), Answer({"inject": ""})),
]


@pytest.mark.parametrize(("answered", "silencing", "harmless"), SILENCES)
def test_a_mutant_falls_silent(server: GatedDaemon, answered: str, silencing: Answer, harmless: Answer) -> None:
    """After the answer that is waited for nothing is sent any more, whatever it is about."""
    change = {"do": "fall_silent", "on": "user-prompt-submit", "answered": answered}
    server.always[PROMPT] = harmless
    send(server, change, ("POST", PROMPT, HOOK), ("POST", PROMPT, HOOK))
    assert len(server.requests) == 2
    server.always[PROMPT] = silencing
    heard = send(server, change, ("POST", PROMPT, HOOK), ("POST", END, HOOK), ("POST", FORGET, {}))
    assert len(server.requests) == 3
    assert [type(reply) for reply in heard[1:]] == [httpx.ConnectError] * 2


def test_a_mutant_falls_silent_when_nobody_listens(server: GatedDaemon) -> None:
    """A connection that could not be made silences it, though somebody listens later."""

    async def run() -> None:
        change = {"do": "fall_silent", "on": "*", "answered": "lost"}
        transport = MutatingTransport(change, transport_to(server.origin))
        async with httpx.AsyncClient(transport=transport, base_url=server.origin) as client:
            for become in (server.refuse, server.listen_again):
                become()
                with pytest.raises(httpx.ConnectError):
                    await client.post(START, json=HOOK)

    asyncio.run(run())
    assert server.requests == []
