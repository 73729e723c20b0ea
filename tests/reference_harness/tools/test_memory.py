"""The built-in tools: what each sends, and what each refuses to send."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.tools import ToolResult
from tests.reference_harness.recording_daemon import EXEC, FORGET, MODIFY, RECALL, REMEMBER, Answer, RecordingDaemon
from tests.reference_harness.sessions import AGENT, PROJECT, session_of

SCHEMAS = Path(__file__).resolve().parents[3] / "schemas"
Hosted = Callable[..., Any]
JOB = f"{EXEC}/job-1"
SECRETS = {"command": "printenv A", "secrets": {"A": "ACME_TOKEN"}}
RUNNING = Answer({"id": "job-1", "status": "running"})


@pytest.fixture
def use(hosted: Hosted) -> Callable[..., list[ToolResult]]:
    """Runs (tool, arguments) pairs in one started session and returns their results."""

    def run(*calls: tuple[str, dict[str, Any]]) -> list[ToolResult]:
        async def work(host: SessionHost) -> list[ToolResult]:
            session = session_of(host)
            await session.start()
            return [await session.use_tool(name, arguments) for name, arguments in calls]

        results: list[ToolResult] = hosted(work)
        return results

    return run


Use = Callable[..., list[ToolResult]]


def test_search_carries_key_and_agent(daemon: RecordingDaemon, use: Use) -> None:
    """A recall names the session and its agent in the body."""
    assert use(("memory_search", {"query": "port", "limit": 3}))[0].ok
    assert daemon.bodies(RECALL) == [{"query": "port", "limit": 3, "sessionKey": "key-s1", "agentId": AGENT}]


@pytest.fixture(scope="module")
def real() -> dict[str, Any]:
    """By name, what a real daemon 0.145.7 answered."""
    lines = (SCHEMAS / "answers" / "0.145.7.jsonl").read_text().splitlines()
    return {line["id"]: line["response_body"] for line in map(json.loads, lines)}


def test_a_search_says_how_many_rows_were_shown_above(daemon: RecordingDaemon, use: Use, real: dict[str, Any]) -> None:
    """A real daemon leaves them out and counts them; with include_recalled it brings them, each with a mark."""
    daemon.answers[RECALL] = [
        Answer(real["recall/session-again"]),
        Answer(real["recall/session-again,-includeRecalled"]),
    ]
    left_out, again = use(
        ("memory_search", {"query": "x"}), ("memory_search", {"query": "x", "include_recalled": True})
    )
    note = "4 rows that fit were shown above; include_recalled shows them again"
    assert left_out.content == {"results": [], "note": note}
    assert [row["already_recalled"] for row in again.content["results"]] == [True] * 4
    assert "note" not in again.content


def test_the_model_reads_nothing_of_how_rows_were_found(
    daemon: RecordingDaemon, use: Use, real: dict[str, Any]
) -> None:
    """Timings and empty members stay away: the answer is shorter than half, and each row's words are whole."""
    whole = real["recall/session-first"]
    daemon.answers[RECALL] = [Answer(whole)]
    shown = use(("memory_search", {"query": "x"}))[0].content
    assert [row["content"] for row in shown["results"]] == [row["content"] for row in whole["results"]]
    assert {name for row in shown["results"] for name in row} == {
        "id",
        "content",
        "type",
        "score",
        "created_at",
        "project",
    }
    assert list(shown) == ["results"]
    assert len(json.dumps(shown)) < len(json.dumps(whole)) / 2


def test_store_goes_through_the_hook(daemon: RecordingDaemon, use: Use) -> None:
    """A save names harness, session, agent, path and project, and has an idempotency key."""
    assert use(("memory_store", {"content": "note", "type": "decision", "tags": ["a"], "unknown": 1}))[0].ok
    body = dict(daemon.bodies(REMEMBER)[0])
    assert body.pop("idempotencyKey")
    assert body == {
        "harness": "reference",
        "sessionKey": "key-s1",
        "agentId": AGENT,
        "runtimePath": "plugin",
        "project": PROJECT,
        "content": "note",
        "type": "decision",
        "tags": ["a"],
    }


def test_idempotency_key_follows_agent_and_content(daemon: RecordingDaemon, hosted: Hosted) -> None:
    """A repeated save has the first one's key, in another session too; other content or agent has not."""
    daemon.answers[REMEMBER] = [Answer({"error": "x"}, 500)]

    async def work(host: SessionHost) -> None:
        first, second = session_of(host), session_of(host, "s2")
        other = session_of(host, "s3", agent="nova")
        for session, content in ((first, "a"), (first, "a"), (second, "a"), (first, "b"), (other, "a")):
            await session.start()
            await session.use_tool("memory_store", {"content": content})

    hosted(work)
    keys = [body["idempotencyKey"] for body in daemon.bodies(REMEMBER)]
    assert keys[0] == keys[1] == keys[2]
    assert len({keys[0], keys[3], keys[4]}) == 3


def test_get_asks_as_the_agent(daemon: RecordingDaemon, use: Use) -> None:
    """A read names the agent in the query."""
    daemon.always["/api/memory/m-1"] = Answer({"id": "m-1", "content": "x"})
    assert use(("memory_get", {"id": "m-1"}))[0].content["content"] == "x"
    assert daemon.requests[-1].query == {"agentId": AGENT}


def test_missing_memory_is_asked_for_once(daemon: RecordingDaemon, use: Use) -> None:
    """A read answered 404 is an error to the model, and the same read is not made again."""
    results = use(("memory_get", {"id": "m-404"}), ("memory_get", {"id": "m-404"}))
    assert [result.ok for result in results] == [False, False]
    assert [request.path for request in daemon.requests].count("/api/memory/m-404") == 1


def test_modify_takes_one_row_or_several(daemon: RecordingDaemon, use: Use) -> None:
    """Flat arguments become one patch; a common reason goes into each patch that has none."""
    use(
        ("memory_modify", {"id": "m-1", "reason": "typo", "content": "x", "if_version": 2}),
        (
            "memory_modify",
            {"reason": "all", "patches": [{"id": "a", "pinned": True}, {"id": "b", "reason": "own", "type": "fact"}]},
        ),
    )
    assert [body["patches"] for body in daemon.bodies(MODIFY)] == [
        [{"id": "m-1", "reason": "typo", "content": "x", "if_version": 2}],
        [{"id": "a", "reason": "all", "pinned": True}, {"id": "b", "reason": "own", "type": "fact"}],
    ]


def test_forgetting_a_few_ids_is_one_call(daemon: RecordingDaemon, use: Use) -> None:
    """Up to 25 ids are forgotten at once, with the reason."""
    use(("memory_forget", {"ids": ["a", "b"], "reason": "old", "if_version": 3}))
    assert daemon.bodies(FORGET) == [
        {"mode": "execute", "ids": ["a", "b"], "limit": 2, "reason": "old", "agentId": AGENT}
    ]


def test_forgetting_many_repeats_the_token_of_the_preview(daemon: RecordingDaemon, use: Use) -> None:
    """More than 25 ids are previewed, and the execution repeats the preview's token."""
    ids = [f"m-{number}" for number in range(26)]
    rows = [{"id": memory, "score": 1, "pinned": False, "version": 1} for memory in ids]
    preview = {"mode": "preview", "count": 26, "requiresConfirm": True, "confirmToken": "t-1", "candidates": rows}
    daemon.answers[FORGET] = [Answer(preview)]
    assert use(("memory_forget", {"ids": ids, "reason": "old"}))[0].ok
    first, second = daemon.bodies(FORGET)
    assert (first["mode"], first["ids"], "confirm_token" in first) == ("preview", ids, False)
    assert (second["mode"], second["ids"], second["confirm_token"]) == ("execute", ids, "t-1")


def test_forgetting_by_query_forgets_what_was_previewed(daemon: RecordingDaemon, use: Use) -> None:
    """A selection by query is previewed, and then forgotten by the ids that the preview named."""
    preview = {"mode": "preview", "count": 1, "requiresConfirm": False, "candidates": [{"id": "m-7"}]}
    daemon.answers[FORGET] = [Answer(preview)]
    use(("memory_forget", {"query": "old port", "reason": "moved"}))
    assert [(body["mode"], body.get("query"), body.get("ids")) for body in daemon.bodies(FORGET)] == [
        ("preview", "old port", None),
        ("execute", None, ["m-7"]),
    ]


@pytest.mark.parametrize(
    "preview", [Answer({"error": "x"}, 500), Answer({"mode": "preview", "count": 0, "candidates": []})]
)
def test_nothing_is_forgotten_without_a_preview_to_go_by(daemon: RecordingDaemon, use: Use, preview: Answer) -> None:
    """A failed or empty preview is not followed by an execution."""
    daemon.answers[FORGET] = [preview]
    use(("memory_forget", {"query": "x", "reason": "y"}))
    assert [body["mode"] for body in daemon.bodies(FORGET)] == ["preview"]


def test_secret_job_is_looked_at_until_it_is_over(daemon: RecordingDaemon, use: Use) -> None:
    """A job is polled until a terminal state, and not once more."""
    done = Answer({"id": "job-1", "status": "completed", "result": {"stdout": "[REDACTED]", "code": 0}})
    daemon.answers[JOB] = [RUNNING, RUNNING, done]
    result = use(("secret_exec", {**SECRETS, "timeoutMs": 30_000}))[0]
    assert result.content["status"] == "completed"
    assert daemon.bodies(EXEC) == [{**SECRETS, "timeoutMs": 30_000, "agentId": AGENT}]
    assert [request.path for request in daemon.requests].count(JOB) == 3


@pytest.mark.parametrize("last", [Answer({"error": "secret exec job not found"}, 404), Answer({"error": "no"}, 403)])
def test_job_that_may_not_be_seen_is_not_looked_at_again(daemon: RecordingDaemon, use: Use, last: Answer) -> None:
    """A 4xx on the job ends the polling."""
    daemon.answers[JOB] = [last]
    daemon.always[JOB] = RUNNING
    assert not use(("secret_exec", SECRETS))[0].ok
    assert [request.path for request in daemon.requests].count(JOB) == 1


def test_job_that_is_done_at_once_is_not_polled(daemon: RecordingDaemon, use: Use) -> None:
    """A terminal 202 is the result."""
    daemon.answers[EXEC] = [Answer({"id": "job-1", "status": "failed", "error": "x"}, 202)]
    assert use(("secret_exec", SECRETS))[0].content["status"] == "failed"
    assert daemon.paths() == ["session-start", "exec"]


def test_job_survives_an_answer_that_fails(daemon: RecordingDaemon, use: Use) -> None:
    """A 500 in between does not end the polling."""
    daemon.answers[JOB] = [Answer({"error": "x"}, 500), Answer({"id": "job-1", "status": "completed"})]
    assert use(("secret_exec", SECRETS))[0].ok


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_search", {}),
        ("memory_search", {"query": " "}),
        ("memory_search", {"query": "x", "limit": 0}),
        ("memory_search", {"query": "x", "limit": 101}),
        ("memory_search", {"query": "x", "limit": True}),
        ("memory_store", {"content": ""}),
        ("memory_store", {"content": 5}),
        ("memory_store", {"content": "x", "tags": 5}),
        ("memory_store", {"content": "x", "importance": float("nan")}),
        ("memory_store", {"content": "x", "importance": 7}),
        *(
            ("memory_get", {"id": memory_id})
            for memory_id in ("", "stats", "undefined", "NaN", "a b", "a/b", "a?b", "..", "search")
        ),
        ("memory_modify", {"id": "a", "content": "x"}),
        ("memory_modify", {"id": "a", "reason": "x"}),
        ("memory_modify", {"patches": [], "reason": "x"}),
        ("memory_modify", {"patches": [{"id": "a", "content": "x"}] * 201, "reason": "x"}),
        ("memory_modify", {"id": "a", "reason": "x", "content": "y", "if_version": 0}),
        ("memory_forget", {"ids": ["a"]}),
        ("memory_forget", {"reason": "x"}),
        ("memory_forget", {"ids": [], "reason": "x"}),
        ("memory_forget", {"ids": ["a"] * 201, "reason": "x"}),
        ("memory_forget", {"ids": ["a"], "reason": "x", "mode": "burn"}),
        ("secret_exec", {"command": " ", "secrets": {"A": "B"}}),
        ("secret_exec", {"command": "true", "secrets": {}}),
        ("secret_exec", {"command": "true", "secrets": {"A": ""}}),
        ("secret_exec", {"command": "true", "secrets": {"A": "B"}, "timeoutMs": 5}),
        ("no_such_tool", {}),
    ],
)
def test_arguments_that_break_the_contract_are_not_sent(
    daemon: RecordingDaemon, use: Use, tool: str, arguments: dict[str, Any]
) -> None:
    """The model is told what is wrong, and no request is made."""
    result = use((tool, arguments))[0]
    assert not result.ok
    assert result.error
    assert daemon.paths() == ["session-start"]
