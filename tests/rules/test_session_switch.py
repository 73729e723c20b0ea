"""Facts about ends that met nobody listening, and are told later: at a switch, at a clear, at another end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from signet_conformance.engine import judge
from tests.support.case_traces import KEYED, build

Item = Mapping[str, Any]


def mark(name: str, **data: Any) -> Item:
    """A mark of the kit."""
    return {"mark": name, "data": data}


def hook(operation: str, key: str, **more: Any) -> Item:
    """A hook of a session."""
    body = {**KEYED, "sessionKey": key, "userMessage": "next", **more}
    request = {"method": "POST", "path": f"/api/hooks/{operation}", "body": body}
    answer = {"inject": "", "memories": []} if operation == "session-start" else {"inject": "", "memoryCount": 0}
    return {"request": request, "response": {"status": 200, "body": answer}}


def step(kind: str, session: str, index: int) -> Item:
    """A step that was given to the connector."""
    return mark("step", step=kind, session=session, index=index, text="next")


AWAY, BACK = mark("fault", kind="refuse", on=True), mark("fault", kind="refuse", on=False)


@pytest.mark.parametrize(("between", "expected"), [((AWAY, BACK), "INCONCLUSIVE"), ((), "WARN")])
def test_end_that_met_nobody_listening_may_come_late(tmp_path: Path, between: tuple[Item, ...], expected: str) -> None:
    """The user ended the old session in an outage, which leaves no exchange: that its end comes late is no breach."""
    ended = [*between[:1], step("end", "s1", 1), *between[1:]]
    old = [step("start", "s1", 0), hook("session-start", "k-1"), *ended]
    new = [step("start", "s2", 2), hook("session-start", "k-2"), step("prompt", "s2", 3)]
    late = [hook("user-prompt-submit", "k-2"), hook("session-end", "k-1")]
    judged = judge(build(tmp_path / "trace.jsonl", [*old, *new, *late]))
    assert judged.judgements["SIG-END-010"].verdict == expected


STARTED = [step("start", "s1", 0), hook("session-start", "k-1", source="startup")]


def verdict(folder: Path, requirement: str, *items: Item) -> str:
    """The verdict of a requirement over a recording of these items."""
    return judge(build(folder / "trace.jsonl", items)).judgements[requirement].verdict


@pytest.mark.parametrize(("away", "expected"), [(True, "PASS"), (False, "FAIL")])
def test_clear_that_met_nobody_listening_is_told_at_the_end(tmp_path: Path, away: bool, expected: str) -> None:
    """The end that a clear owes comes when the user ends the session; one that owes none has no such reason."""
    cleared = [AWAY, step("clear", "s1", 1), BACK] if away else [step("prompt", "s1", 1)]
    told = [hook("session-end", "k-1", reason="clear"), hook("session-start", "k-1", source="clear")]
    closing = [step("end", "s1", 2), *told, hook("session-end", "k-1", reason="exit")]
    assert verdict(tmp_path, "SIG-END-009", *STARTED, *cleared, *closing) == expected


CLEARED = [hook("session-end", "k-1", reason="clear"), hook("session-start", "k-1", source="clear")]
LOGOUT = hook("session-end", "k-1", reason="exit")
GONE_ON = [LOGOUT, hook("session-start", "k-1", source="resume")]
BESIDE = [step("start", "s2", 5), hook("session-start", "k-2")]


@pytest.mark.parametrize(
    ("before", "told", "expected"),
    [
        ([step("clear", "s1", 1)], [*CLEARED, LOGOUT], "PASS"),
        ([step("clear", "s1", 1)], CLEARED, "FAIL"),
        ([step("clear", "s1", 1)], [*CLEARED, CLEARED[0]], "FAIL"),
        ([step("clear", "s1", 1)], [*CLEARED, step("resume", "s1", 3), LOGOUT], "FAIL"),
        ([step("clear", "s1", 1), *CLEARED], [*CLEARED, LOGOUT], "FAIL"),
        ([step("clear", "s2", 1)], [*CLEARED, LOGOUT], "FAIL"),
        ([step("clear", "s1", 1)], [*CLEARED, step("end", "s2", 3), hook("session-end", "k-2")], "FAIL"),
        ([*BESIDE, step("clear", "s1", 1)], [*CLEARED, hook("session-end", "k-2")], "FAIL"),
        ([*BESIDE, step("clear", "s1", 1), hook("session-end", "k-2")], [*CLEARED, LOGOUT], "PASS"),
        ([step("clear", "s1", 1)], [*CLEARED, hook("session-end", "k-1", reason="agent_end")], "PASS"),
        ([step("resume", "s1", 5), *GONE_ON, step("clear", "s1", 1)], [*CLEARED, LOGOUT], "PASS"),
        ([*GONE_ON, step("clear", "s1", 1)], CLEARED, "FAIL"),
        ([step("clear", "s1", 1), step("resume", "s1", 5)], [*CLEARED, LOGOUT], "FAIL"),
    ],
    ids=[
        *("late", "alone", "twice", "resumed", "told at the clear", "of another", "another's", "another's beside"),
        *("another is ended at the clear", "of a turn", "ended before", "ended before, and alone", "opened since"),
    ],
)
def test_end_of_a_clear_may_come_late(tmp_path: Path, before: list[Item], told: list[Item], expected: str) -> None:
    """In the step of the user's own end, which has an end of its own, where none came at the clear."""
    assert verdict(tmp_path, "SIG-END-009", *STARTED, *before, step("end", "s1", 2), *told) == expected


@pytest.mark.parametrize(("ended", "expected"), [("k-2", "PASS"), ("k-1", "FAIL"), ("k-3", "FAIL")])
def test_end_of_the_second_clear_may_come_late(tmp_path: Path, ended: str, expected: str) -> None:
    """A queue tells the first clear in the second one's step, and the second one at the user's own end."""
    first = [step("clear", "s1", 1), hook("session-start", "k-2", source="clear"), step("clear", "s1", 2)]
    second = [hook("session-end", "k-1", reason="clear"), hook("session-start", "k-3", source="clear")]
    told = [hook("session-end", ended, reason="clear"), hook("session-end", "k-3", reason="exit")]
    closing = [mark("session_key", session="s1", key="k-3"), step("end", "s1", 3), *told]
    items = [mark("session_key", session="s1", key="k-1"), *first, *second, *closing, *BESIDE]
    assert verdict(tmp_path, "SIG-END-009", *STARTED, *items) == expected


def spoilt(item: Item, kind: str = "reset") -> Item:
    """A hook that met a fault: nothing was answered, or nothing of use."""
    if kind == "reset":
        return {**item, "response": None, "error": {"kind": "upstream_reset"}, "fault": {"kind": kind}}
    return {**item, "response": {"status": 503, "body": {"error": "shutting down"}}, "fault": {"kind": kind}}


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ([spoilt(CLEARED[0])], "INCONCLUSIVE"),
        ([spoilt(CLEARED[0], "status")], "INCONCLUSIVE"),
        ([spoilt(CLEARED[0]), spoilt(CLEARED[1])], "PASS"),
        ([spoilt(CLEARED[0]), CLEARED[1]], "FAIL"),
        ([CLEARED[0], spoilt(CLEARED[1])], "FAIL"),
        ([spoilt(LOGOUT)], "FAIL"),
        ([spoilt(hook("session-end", "k-1", reason="agent_end"))], "FAIL"),
        ([spoilt(CLEARED[0]), spoilt(hook("user-prompt-submit", "k-1"))], "FAIL"),
        ([], "FAIL"),
    ],
    ids=[
        "lost",
        "refused",
        "with its start",
        "started since",
        "accepted",
        "another reason",
        "a turn's end",
        "used since",
        "none",
    ],
)
def test_end_of_a_clear_that_failed_may_be_told_again(tmp_path: Path, before: list[Item], expected: str) -> None:
    """In the step of the user's own end too, as long as nothing of the key was accepted since."""
    items = [step("clear", "s1", 1), *before, step("end", "s1", 2), CLEARED[0]]
    assert verdict(tmp_path, "SIG-END-009", *STARTED, *items) == expected


def test_end_of_a_clear_repeats_no_start(tmp_path: Path) -> None:
    """Where a start alone failed before it, no clear was told."""
    lost = [STARTED[0], spoilt(STARTED[1], "status"), step("prompt", "s1", 1), step("end", "s1", 2)]
    assert verdict(tmp_path, "SIG-END-009", *lost, CLEARED[0]) == "FAIL"


def test_session_that_no_step_opened_was_not_cleared(tmp_path: Path) -> None:
    """Its end owes no other."""
    opened = [step("prompt", "s1", 1), hook("session-start", "k-1")]
    assert verdict(tmp_path, "SIG-END-009", *opened, step("end", "s1", 2), *CLEARED, LOGOUT) == "FAIL"


@pytest.mark.parametrize(("index", "expected"), [(2, "PASS"), (1, "FAIL")])
def test_end_of_a_clear_where_the_users_end_was_skipped(tmp_path: Path, index: int, expected: str) -> None:
    """The user did not end the session there."""
    skipped = mark("skipped", index=index, reason="no such command")
    items = [*STARTED, step("prompt", "s1", 1), step("end", "s1", 2), *CLEARED, skipped]
    assert verdict(tmp_path, "SIG-END-009", *items) == expected


@pytest.mark.parametrize(("away", "expected"), [(True, "PASS"), (False, "WARN")])
def test_end_that_met_nobody_listening_is_told_at_a_clear(tmp_path: Path, away: bool, expected: str) -> None:
    """The first end and start in a clear's step may make up for an earlier end; the last start says that it is one."""
    owed = [AWAY, step("end", "s1", 1), step("resume", "s1", 2), BACK] if away else [step("prompt", "s1", 1)]
    made_up = [hook("session-end", "k-1", reason="exit"), hook("session-start", "k-1", source="resume")]
    cleared = [hook("session-end", "k-1", reason="clear"), hook("session-start", "k-1", source="clear")]
    assert verdict(tmp_path, "SIG-START-006", *STARTED, *owed, step("clear", "s1", 3), *made_up, *cleared) == expected


@pytest.mark.parametrize(
    ("source", "is_ended", "expected"),
    [("startup", True, "PASS"), ("clear", True, "PASS"), ("clear", False, "WARN"), ("startup", False, "WARN")],
)
def test_start_that_a_clear_ends_is_of_before_it(tmp_path: Path, source: str, is_ended: bool, expected: str) -> None:
    """A session that is cleared before its first turn may be started, ended, and started as cleared later."""
    started = hook("session-start", "k-1", source=source)
    ended = [hook("session-end", "k-1", reason="clear")] if is_ended else []
    asked = [step("prompt", "s1", 2), hook("session-start", "k-1", source="clear"), hook("user-prompt-submit", "k-1")]
    items = [step("start", "s1", 0), step("clear", "s1", 1), started, *ended, *asked]
    assert verdict(tmp_path, "SIG-START-006", *items) == expected


@pytest.mark.parametrize(("away", "expected"), [(True, "INCONCLUSIVE"), (False, "WARN")])
def test_end_that_met_nobody_listening_may_never_be_told(tmp_path: Path, away: bool, expected: str) -> None:
    """Whether the old session was ended before the new one began cannot be seen where nothing listened between."""
    between = [AWAY, step("end", "s1", 1), BACK] if away else [step("end", "s1", 1)]
    new = [step("start", "s2", 2), hook("session-start", "k-2"), step("end", "s2", 3), hook("session-end", "k-2")]
    assert verdict(tmp_path, "SIG-END-010", *STARTED, *between, *new) == expected


@pytest.mark.parametrize(("away", "expected"), [(True, "INCONCLUSIVE"), (False, "FAIL")])
def test_prompt_without_a_key_may_be_of_a_start_that_met_nobody(tmp_path: Path, away: bool, expected: str) -> None:
    """A start without a key that fell into an outage was not recorded, so what its prompt owes cannot be seen."""
    begun = [AWAY, step("start", "s2", 1), BACK] if away else [step("start", "s2", 1)]
    said = [step("prompt", "s2", 2), hook("user-prompt-submit", "")]
    assert verdict(tmp_path, "SIG-PROMPT-005", *STARTED, *begun, *said) == expected


@pytest.mark.parametrize(("away", "expected"), [(True, "INCONCLUSIVE"), (False, "FAIL")])
def test_end_may_be_of_a_start_that_met_nobody(tmp_path: Path, away: bool, expected: str) -> None:
    """Where a clear met nobody listening, the end of the new key is the first that is heard of it."""
    cleared = [AWAY, step("clear", "s1", 1), BACK] if away else [step("clear", "s1", 1)]
    closing = [step("end", "s1", 2), hook("session-end", "k-2", reason="exit")]
    assert verdict(tmp_path, "SIG-END-002", *STARTED, *cleared, *closing) == expected


@pytest.mark.parametrize(("first", "second"), [("k-1", "k-2"), ("k-2", "k-1")])
def test_end_before_the_next_start(tmp_path: Path, first: str, second: str) -> None:
    """Whatever the keys are called."""
    items = [hook("session-start", first), hook("session-end", first), hook("session-start", second)]
    assert verdict(tmp_path, "SIG-END-010", *items) == "PASS"


@pytest.mark.parametrize(
    ("used", "expected"),
    [((), "PASS"), ((step("prompt", "s1", 1), hook("user-prompt-submit", "k-1")), "WARN")],
)
def test_end_of_an_unused_session_has_no_transcript_however_often_it_is_told(
    tmp_path: Path, used: tuple[Item, ...], expected: str
) -> None:
    """An end that is told again in the first turn after a clear is about the session before the clear."""
    cleared = [step("clear", "s1", 2), hook("session-end", "k-1"), hook("session-start", "k-2")]
    late = [step("prompt", "s1", 3), hook("session-end", "k-1"), hook("user-prompt-submit", "k-2")]
    told = hook("session-end", "k-2", transcript="user: next")
    items = [*STARTED, *used, *cleared, *late, step("end", "s1", 4), told]
    assert verdict(tmp_path, "SIG-END-003", *items) == expected


@pytest.mark.parametrize(
    ("used", "expected"),
    [((), "PASS"), ((step("prompt", "s1", 1), hook("user-prompt-submit", "k-1")), "WARN")],
)
def test_end_of_an_unused_session_that_comes_when_the_harness_quits_has_no_transcript(
    tmp_path: Path, used: tuple[Item, ...], expected: str
) -> None:
    """The user has spoken since, but in a session with another key."""
    cleared = [step("clear", "s1", 2), hook("session-start", "k-2")]
    spoken = [step("prompt", "s1", 3), hook("user-prompt-submit", "k-2"), step("end", "s1", 4)]
    told = [hook("session-end", "k-2", transcript="user: next"), hook("session-end", "k-1")]
    assert verdict(tmp_path, "SIG-END-003", *STARTED, *used, *cleared, *spoken, *told) == expected


def test_end_after_another_hook_is_not_told_again(tmp_path: Path) -> None:
    """It is about what was said since the session was ended before; that was silent, this was not."""
    silent = [step("end", "s1", 1), hook("session-end", "k-1")]
    resumed = [step("resume", "s1", 2), step("prompt", "s1", 3), hook("session-checkpoint-extract", "k-1")]
    items = [*STARTED, *silent, *resumed, step("end", "s1", 4), hook("session-end", "k-1")]
    assert verdict(tmp_path, "SIG-END-003", *items) == "WARN"


@pytest.mark.parametrize(("growing", "expected"), [(True, "INCONCLUSIVE"), (False, "WARN")])
def test_session_may_be_ended_while_the_recording_still_grows(tmp_path: Path, growing: bool, expected: str) -> None:
    """What has not happened yet may still happen."""
    items = [hook("session-start", "k-1"), hook("session-start", "k-2"), hook("session-end", "k-2")]
    trace = replace(build(tmp_path / "trace.jsonl", items), growing=growing)
    assert judge(trace).judgements["SIG-END-010"].verdict == expected


def test_session_that_is_ended_late_is_told_while_the_recording_still_grows(tmp_path: Path) -> None:
    """The end that came shows the order."""
    late = [hook("user-prompt-submit", "k-2"), hook("session-end", "k-1")]
    items = [hook("session-start", "k-1"), hook("session-start", "k-2"), *late]
    trace = replace(build(tmp_path / "trace.jsonl", items), growing=True)
    assert judge(trace).judgements["SIG-END-010"].verdict == "WARN"


SAID = "Which exports are due?"


def begun_under_a_key(*, native_key: bool = True) -> list[Item]:
    """A start without a key, as a plugin sends it when it is loaded, and one under the key of the session."""
    told = [{"mark": "session_key", "data": {"session": "s1", "key": "k-1"}}] if native_key else []
    return [hook("session-start", ""), step("start", "s1", 0), hook("session-start", "k-1"), *told]


@pytest.mark.parametrize(
    ("begun", "said", "expected"),
    [
        (begun_under_a_key(), [hook("user-prompt-submit", "", userMessage=SAID)], "FAIL"),
        (begun_under_a_key(native_key=False), [hook("user-prompt-submit", "", userMessage=SAID)], "INCONCLUSIVE"),
        (begun_under_a_key(), [hook("user-prompt-submit", "", userMessage="A title for it")], "INCONCLUSIVE"),
        (
            begun_under_a_key(),
            [hook("user-prompt-submit", "k-1", userMessage=SAID), hook("user-prompt-submit", "", userMessage=SAID)],
            "PASS",
        ),
        (
            [*begun_under_a_key(), hook("session-end", "k-1")],
            [hook("user-prompt-submit", "", userMessage=SAID)],
            "INCONCLUSIVE",
        ),
    ],
    ids=["the turn", "whose key it is is not told", "another text", "beside the turn", "ended before"],
)
def test_turn_of_a_session_that_was_started_under_a_key_has_it(
    tmp_path: Path, begun: list[Item], said: list[Item], expected: str
) -> None:
    """That a plugin starts without a key when it is loaded excuses no turn of a session that it starts with one."""
    items = [*begun, mark("step", step="prompt", session="s1", index=1, text=SAID), *said]
    assert verdict(tmp_path, "SIG-PROMPT-005", *items) == expected


def test_start_before_a_turn_without_a_key_is_named(tmp_path: Path) -> None:
    """Where it came before, and the user said in that turn what the prompt tells."""

    def told(kind: str, text: str) -> list[Item]:
        asked = mark("step", step=kind, session="s1", text=text)
        return [asked, hook("user-prompt-submit", "", userMessage=text)]

    known = [mark("session_key", session="s1", key="k-1"), hook("session-start", "k-0")]
    began = [step("start", "s1", 0), hook("user-prompt-submit", "k-1"), *told("prompt", "Who?")]
    items = [*known, *began, hook("session-start", "k-1"), *told("tool", SAID), *told("prompt", SAID)]
    judged = judge(build(tmp_path / "trace.jsonl", items)).judgements["SIG-PROMPT-005"]
    assert [finding.exchanges for finding in judged.findings] == [(6,), (9,), (11, 7)]


@pytest.mark.parametrize(("away", "unexcused"), [(True, False), (False, True)])
def test_end_that_met_nobody_listening_may_come_in_a_compaction(tmp_path: Path, away: bool, unexcused: bool) -> None:
    """The session was closed in an outage and resumed; its connector sends the end when it is next called."""
    id_told = mark("session_key", session="s1", key="host-1")
    closed = [step("end", "s1", 2), step("resume", "s1", 3)] if away else []
    late = [hook("session-end", "k-1", reason="session_shutdown"), hook("session-start", "k-1", source="resume")]
    compacted = [step("pre_compaction", "s1", 4), *late, hook("pre-compaction", "k-1")]
    items = [*STARTED, id_told, step("prompt", "s1", 1), hook("user-prompt-submit", "k-1")]
    judged = judge(build(tmp_path / "trace.jsonl", [*items, AWAY, *closed, BACK, *compacted]))
    folds = {finding.fold for finding in judged.judgements["SIG-CMP-008"].findings}
    assert ("ended" in folds) is unexcused
