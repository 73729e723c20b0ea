"""Which contract a daemon serves, by its answers to recorded requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from signet_conformance.probing import ProbedAnswers, learn, requirements_on, write_draft
from signet_conformance.probing.replay import ProbeAnswer, Replay, differences, recorded, row_of
from signet_conformance.running.daemon import DaemonUnderTest
from tests.support.command_line import Process

pytestmark = pytest.mark.waits

ROWS = {row["id"]: row for row in recorded("0.145.7")}


@pytest.fixture(scope="module")
def learnt() -> ProbedAnswers:
    """The answers of the embedded daemon of 0.109, compared with those of 0.109 and 0.145."""
    return learn("embedded:0.109", ("0.109", "0.145"), lambda _: None)


def test_a_daemon_serves_the_version_whose_answers_it_gives(learnt: ProbedAnswers) -> None:
    assert (learnt.reported, learnt.best) == ("0.109.15", "0.109")
    assert learnt.agreeing["0.109"] == len(learnt.rows)
    assert list(learnt.other_answers("0.109")) == []


APART_AT_0_123_21 = {
    "health/preflight-of-a-hook",
    "hooks-recall/valid",
    "recall/agentId-number",
    "recall/bypassed-session",
    "recall/session-after-compaction-complete",
    "recall/session-again,-includeRecalled",
    "recall/session-first",
    "recall/time-junk",
    "recall/valid",
    "remember/(setup)",
    "remember/agentId-number",
    "remember/same-content,-other-project",
    "remember/same-content,-private",
    "remember/structured-null",
    "remember/validUntil-before-validFrom",
    "session-end/agentId-number",
    "session-start/agent-id-in-the-session-key",
    "session-start/agentId-blank",
    "session-start/agentId-named",
    "session-start/runtime-path-unknown-value",
    "session-start/same-session,-other-agent",
    "session-start/same-session,-other-harness",
    "session-start/same-session,-source-clear",
    "user-prompt-submit/prompt-after-session-end",
}
"""Probes that a real 0.123.21 answers otherwise than 0.145.7."""


def test_a_real_0_123_21_answers_as_contract_0_145_says(learnt: ProbedAnswers) -> None:
    """Except for a few named answers: so 0.145 holds from 0.123.15 on."""
    kept = {(row["id"], number): row for number, row in enumerate(recorded("0.123.21"))}
    served = learnt.versions["0.145"]
    assert [name for name, _ in kept] == [row["id"] for row in served]
    differing = {
        row["id"]
        for row, own in zip(served, kept.values(), strict=True)
        if list(
            differences(
                row, ProbeAnswer(own["status"], own["response_headers"], own["response_body"], own["response_is_json"])
            )
        )
    }
    assert differing == APART_AT_0_123_21


def test_other_answers_are_named_with_their_operation(learnt: ProbedAnswers) -> None:
    others = list(learnt.other_answers("0.145"))
    assert len(others) == len(learnt.rows) - learnt.agreeing["0.145"]
    executed = next(each for each in others if each.probe == "secrets-exec/valid")
    assert (executed.operation, executed.differences) == ("secrets-exec", ["status 200, not 202"])


def test_rules_rest_on_the_answers_of_an_operation() -> None:
    assert {"SIG-START-005", "SIG-DAEMON-004"} <= set(requirements_on("session-start"))
    assert requirements_on("no-operation") == []


def test_a_draft_satisfies_the_schemas(learnt: ProbedAnswers, tmp_path: Path, schema: Any) -> None:
    answers, routes, version = write_draft(learnt, tmp_path / "draft")
    drafted = json.loads(version.read_text("utf-8"))
    schema("versions.schema.json").demand(drafted, version.name)
    schema("routes.schema.json").demand(json.loads(routes.read_text("utf-8")), routes.name)
    assert drafted["daemon_versions"] == {"from": "0.109.15", "reference": "0.109.15"}
    assert len(answers.read_text("utf-8").splitlines()) == len(learnt.rows)


def test_a_draft_replaces_nothing(learnt: ProbedAnswers, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        write_draft(learnt, tmp_path)


def test_members_are_named_by_their_place() -> None:
    """The difference names the member, instead of showing two whole shapes."""
    row = ROWS["session-start/valid-full"]
    body = {**row["response_body"], "memories": [], "later": 1}
    del body["inject"]
    said = list(differences(row, ProbeAnswer(200, row["response_headers"], body, is_json=True)))
    assert "/later is new" in said
    assert "/inject is missing" in said
    assert "/memories/* is missing" in said


def test_an_answer_is_kept_as_a_row() -> None:
    row = ROWS["session-start/valid-full"]
    answer = ProbeAnswer(200, {**row["response_headers"], "x-other": "1"}, row["response_body"], is_json=True)
    kept = row_of(row, answer)
    assert kept["response_headers"] == row["response_headers"]
    assert list(differences(kept, answer)) == []


@pytest.mark.parametrize(("version", "status", "says"), [("0.58", 0, "all "), ("0.205", 1, "get another answer")])
def test_prove_ends_with_what_it_found(process: Process, version: str, status: int, says: str) -> None:
    done = process("contract", "prove", version, "--daemon", "embedded:0.58")
    assert (done.returncode, says in done.stdout) == (status, True), done


def test_a_running_daemon_is_written_to_only_if_that_is_allowed(process: Process, tmp_path: Path) -> None:
    daemon = DaemonUnderTest("embedded", tmp_path)
    daemon.start()
    try:
        done = process("contract", "learn", "--daemon", daemon.url)
    finally:
        daemon.close()
    assert done.returncode == 2
    assert "--allow-writes" in done.stderr


def _replayed(answer: httpx.Response) -> ProbeAnswer:
    async def ask() -> ProbeAnswer:
        async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: answer), base_url="http://x") as client:
            return await Replay(client).send(ROWS["recall/valid"])

    return asyncio.run(ask())


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield bytes(1024 * 1024)


def test_an_answer_without_an_end_is_refused() -> None:
    """It is cut off before it fills the memory."""
    with pytest.raises(httpx.ReadError, match="larger than 32 MiB"):
        _replayed(httpx.Response(200, content=_endless()))


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, "{"])
def test_an_answer_that_no_parser_reads_is_a_text(text: str) -> None:
    """Nested too deep, with a number too long, or torn."""
    answer = _replayed(httpx.Response(200, content=text, headers={"content-type": "application/json"}))
    assert (answer.is_json, answer.body) == (False, text)
