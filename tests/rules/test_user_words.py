"""Facts about user turns that are never submitted: what keeps a connector from it, and what does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import Judgement
from tests.support.case_traces import DECLARED, KEYED, build

Item = Mapping[str, Any]


def step(kind: str, session: str = "s1", **more: Any) -> Item:
    """A step that was given to the connector."""
    return {"mark": "step", "data": {"step": kind, "session": session, **more}}


def said(text: str, session: str = "s1", index: int = 9) -> Item:
    """A user turn that took place."""
    return step("prompt", session, index=index, text=text, reply="Understood.")


def hook(operation: str, key: str, status: int = 200, **more: Any) -> Item:
    """A hook of a key with its answer."""
    request = {"method": "POST", "path": f"/api/hooks/{operation}", "body": {**KEYED, "sessionKey": key, **more}}
    return {"request": request, "response": {"status": status, "body": {} if status == 200 else {"error": "no"}}}


def start(status: int = 200, key: str = "k1") -> Item:
    """A session-start."""
    return hook("session-start", key, status)


def prompt(text: str) -> Item:
    """A prompt of another session, which shows that the connector submits them."""
    return hook("user-prompt-submit", "k0", userMessage=text)


def judged(folder: Path, items: Sequence[Item]) -> Judgement:
    """SIG-PROMPT-011 over these items."""
    header = {"declared": {**DECLARED, "capabilities": ["session-start", "user-prompt-submit"]}}
    trace = build(folder / "trace.jsonl", items, header, shared=False)
    return judge(trace, frozenset({"SIG-PROMPT-011"})).judgements["SIG-PROMPT-011"]


SUBMITTED = [step("start", "s0"), start(key="k0"), said("a", "s0"), prompt("a")]
RESUMED = [step("end"), step("resume")]
RESET_ON, RESET_OFF = ({"mark": "fault", "data": {"kind": "reset", "on": on}} for on in (True, False))
ITEMS: Mapping[str, tuple[str, Sequence[Item]]] = {
    "a session that was started": ("WARN", [step("start"), start(), said("b")]),
    "a session of which nothing was heard": ("WARN", [step("start"), said("b")]),
    "a session that was never opened": ("WARN", [said("b")]),
    "a session whose start failed": ("PASS", [step("start"), start(500), said("b")]),
    "a session that was started at last": ("WARN", [step("start"), start(401), *RESUMED, start(), said("b")]),
    "a session that is not started again": ("WARN", [step("start"), start(500), start(), *RESUMED, said("b")]),
    "a session that was opened again while nothing answered": (
        "PASS", [step("start"), start(), step("end"), RESET_ON, step("resume"), RESET_OFF, said("b")]
    ),
    "a session that was opened again after nothing had answered": (
        "WARN", [step("start"), start(), RESET_ON, step("end"), RESET_OFF, step("resume"), said("b")]
    ),
    "a session that may not be started again": ("PASS", [step("start"), start(409), *RESUMED, said("b")]),
    "one that was refused once": ("PASS", [step("start"), start(403), start(), *RESUMED, said("b")]),
    "a start that is refused later": ("WARN", [step("start"), start(), said("b"), *RESUMED, start(401)]),
    "a start of a session that sorts before": (
        "WARN", [step("start"), start(), step("start", "r"), start(401, "k2"), said("b")],
    ),
    "a start of a session that sorts after": (
        "WARN", [step("start"), start(), step("start", "t"), start(401, "k2"), said("b")],
    ),
    "a turn that the driver skipped": (
        "PASS", [{"mark": "skipped", "data": {"index": 7}}, step("start"), start(), said("b", index=7)],
    ),
    "one that was given after it": (
        "WARN", [{"mark": "skipped", "data": {"index": 7}}, step("start"), start(), said("b", index=7), said("c")],
    ),
    "a slash command": ("PASS", [step("start"), start(), said("/help")]),
    "a turn that is submitted late": (
        "PASS", [step("start"), start(), said("b"), step("end"), hook("user-prompt-submit", "k1", userMessage="b")],
    ),
    "one that is never, and whose text another session says later": (
        "WARN", [step("start"), start(), said("b"), step("end"), said("b", "s0"), prompt("b")],
    ),
    "a turn under the key of another session": ("WARN", [step("start"), start(), said("b"), prompt("b"), step("end")]),
    "a sub-agent's turn under its parent's key": (
        "PASS", [step("start", parent="s0"), start(), said("b"), prompt("b"), step("end")],
    ),
    "a turn of a sub-agent's sub-agent under the first key": (
        "PASS", [step("start", "s2", parent="s0"), start(key="k2"), step("start", parent="s2"), start(), said("b"),
                 prompt("b"), step("end")],
    ),
    "a turn of a sub-agent under the key of one beside it": (
        "WARN", [step("start", "s2", parent="s0"), start(key="k2"), step("start", parent="s0"), start(), said("b"),
                 hook("user-prompt-submit", "k2", userMessage="b"), step("end")],
    ),
    "sessions that name each other as parents": (
        "WARN", [step("start", "s2", parent="s1"), start(key="k2"), step("start", parent="s2"), start(), said("b"),
                 prompt("b"), step("end")],
    ),
    "a turn under another key, of a session that was never started": (
        "PASS", [step("start"), said("b"), prompt("b"), step("end")],
    ),
    "a turn under another key, of a session that was started in another's step": (
        "PASS", [step("start"), said("a", "s0"), start(), prompt("a"), said("b"), prompt("b"), step("end")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ITEMS)
def test_a_turn_that_is_never_submitted(name: str, tmp_path: Path) -> None:
    """A breach where the session could be started, as far as its latest start shows; else the rest decides."""
    verdict, items = ITEMS[name]
    judgement = judged(tmp_path, [*SUBMITTED, *items])
    assert (judgement.verdict, judgement.message) == (verdict, judgement.message)


def test_what_was_to_be_submitted_is_told(tmp_path: Path) -> None:
    """With the exchange that came before the next step."""
    finding = judged(tmp_path, [*SUBMITTED, step("start"), start(), said("b"), step("end")]).findings[0]
    assert (finding.expected, finding.exchanges) == ("user-prompt-submit with 'b'", (6,))


def test_key_of_another_session_is_named(tmp_path: Path) -> None:
    """A turn that is told in the wrong session is lost to its own, and the reader is led to the request."""
    told = [prompt("gamma"), prompt("alpha"), prompt("beta")]
    items = [*SUBMITTED, step("start"), start(), said("beta"), *told, step("end")]
    finding = judged(tmp_path, items).findings[0]
    assert finding.message == "step 9: the user's turn is submitted under the key of another session"
    assert (finding.received, finding.exchanges, finding.pointer) == ("k0", (10,), "/request/body/json/sessionKey")


@pytest.mark.parametrize(
    "items",
    [
        [said("a"), step("end")],
        [said("b"), step("end"), said("b", "s0"), prompt("b")],
    ],
)
def test_text_that_another_session_says_in_another_step_is_its_own(items: Sequence[Item], tmp_path: Path) -> None:
    """A turn was told under a wrong key only where its text came in its own step; else it was never told."""
    finding = judged(tmp_path, [*SUBMITTED, step("start"), start(), *items]).findings[0]
    assert finding.message == "step 9: the user's turn is never submitted"


OTHER_TURNS = ("Fix the host", "Fix my host", "Fix the first host")
GIVEN = "Write the notes of 3 May"
AS_GIVEN = "another text arrives in place of the prompt"
OTHER_TEXTS: Mapping[str, str] = {
    "> Fix the host <": "the text of another turn, in the host's envelope",
    "> Fix my host <": f"{AS_GIVEN}, with that of another turn in it",
    "Prefix my hosts": AS_GIVEN,
    "> Fix the first host <": "the text of another turn, in the host's envelope",
    "Write th? notes ?f 3 May": "the prompt arrives with characters replaced",
    "Write th\ufffd notes of 3 May": "the prompt arrives with characters replaced",
    "the notes of 3 May": "the prompt arrives with 6 characters missing",
    "???": AS_GIVEN,
}


@pytest.mark.parametrize("text", OTHER_TEXTS)
def test_what_was_done_to_a_text(text: str, tmp_path: Path) -> None:
    """A finding says it where it can be seen; twelve letters are enough to know another turn by."""
    turns = [step("prompt", text=given, reply="one") for given in (*OTHER_TURNS, GIVEN)]
    items = [step("start"), start(), *turns, hook("user-prompt-submit", "k1", userMessage=text)]
    trace = build(tmp_path / "trace.jsonl", items, shared=False)
    judgements = judge(trace, frozenset({"SIG-PROMPT-010", "SIG-PROMPT-012"})).judgements
    breaches = [each for name in judgements for each in judgements[name].findings if each.verdict != "INCONCLUSIVE"]
    assert [finding.message for finding in breaches] == [OTHER_TEXTS[text]]


ROW = {"id": "1e53b099-6e97-4411-b718-dc3bb807ecdb", "content": "Exports are named by tenant and month."}
TOOL = "a tool's result, submitted as the user's prompt"
TOOL_TEXTS: Mapping[str, str | None] = {
    f"Memory saved successfully (id: {ROW['id']})": TOOL,
    "1. Exports are named by\n   tenant and month. (fact)": TOOL,
    "How are exports named?": None,
    "Nothing is known of that.": AS_GIVEN,
}


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("text", TOOL_TEXTS)
def test_output_of_a_tool_is_told_from_other_texts(text: str, beside: bool, tmp_path: Path) -> None:
    """It holds a memory that a tool's request was answered with, by its id or its words, in its own lines."""
    recall = {"method": "POST", "path": "/api/memory/recall", "body": {"query": "exports"}}
    right = [hook("user-prompt-submit", "k1", userMessage="How are exports named?")]
    items = [
        *[step("start"), start(), step("prompt", text="Look it up.", reply="I do.")],
        hook("user-prompt-submit", "k1", userMessage="Look it up."),
        *[
            step("tool", tool="memory_search"),
            {"request": recall, "response": {"status": 200, "body": {"results": [ROW]}}},
        ],
        step("prompt", text="How are exports named?", reply="By tenant."),
        *(right if beside else []),
        hook("user-prompt-submit", "k1", userMessage=text),
    ]
    trace = build(tmp_path / "trace.jsonl", items, shared=False)
    (judgement,) = judge(trace, frozenset({"SIG-PROMPT-010"})).judgements.values()
    breaches = [finding.message for finding in judgement.findings if finding.verdict == "WARN"]
    # Beside the right one, a text that nobody knows may be the host's.
    expected = None if beside and TOOL_TEXTS[text] == AS_GIVEN else TOOL_TEXTS[text]
    assert breaches == ([] if expected is None else [expected])


@pytest.mark.parametrize("said_blank", ["\ufeff", "\x01"])
def test_blank_text_stands_in_no_envelope(said_blank: str, tmp_path: Path) -> None:
    """Of what a host sends in its place, nobody can tell what it is."""
    turn = [step("prompt", text=said_blank, reply="one"), hook("user-prompt-submit", "k1", userMessage="(no text)")]
    trace = build(tmp_path / "trace.jsonl", [step("start"), start(), *turn], shared=False)
    assert judge(trace, frozenset({"SIG-PROMPT-010"})).judgements["SIG-PROMPT-010"].verdict == "INCONCLUSIVE"


def test_steps_that_are_no_prompts_are_no_subjects(tmp_path: Path) -> None:
    """Whatever they are called."""
    items = [step("start"), start(), step("clear"), step("compact"), step("tool"), step("end")]
    assert judged(tmp_path, items).verdict == "NOT-APPLICABLE"


@pytest.mark.parametrize(("text", "verdict"), [("a", "PASS"), ("b", "WARN")])
def test_late_submission_holds_what_was_said_in_its_step(text: str, verdict: str, tmp_path: Path) -> None:
    """That it comes after the model's turn is another requirement's; a text of a turn before is stale."""
    turns = [("a", "one"), ("b", "two")] if text == "a" else [("b", "one"), ("a", "two")]
    told = "\n".join(f"User: {user}\nAssistant: {reply}" for user, reply in turns)
    items = [
        *[step("start"), start()],
        *[step("prompt", text="a", reply="one"), {"mark": "model", "data": {"session": "s1"}}],
        hook("user-prompt-submit", "k1", userMessage=text, lastAssistantMessage="one"),
        *[step("prompt", text="b", reply="two"), hook("user-prompt-submit", "k1", userMessage="b")],
        *[step("end"), hook("session-end", "k1", transcript=told)],
    ]
    trace = build(tmp_path / "trace.jsonl", items, shared=False)
    judgement = judge(trace, frozenset({"SIG-PROMPT-010"})).judgements["SIG-PROMPT-010"]
    assert judgement.verdict == verdict
    assert [finding.exchanges for finding in judgement.findings] == ([] if text == "a" else [(5, 9)])


def test_words_that_are_lost_are_blamed_once(tmp_path: Path) -> None:
    """A transcript that has the cut words too, with a newer turn, makes no stale text of them."""
    items = [
        *[step("start"), start(), step("prompt", text="Which Postgres version do we run?", reply="one")],
        hook("user-prompt-submit", "k1", userMessage="Which Postgres version", lastAssistantMessage="one"),
        *[step("prompt", text="b", reply="two"), hook("user-prompt-submit", "k1", userMessage="b"), step("end")],
        hook("session-end", "k1", transcript="User: Which Postgres version\nAssistant: one\nUser: b\nAssistant: two"),
    ]
    trace = build(tmp_path / "trace.jsonl", items, shared=False)
    judgements = judge(trace, frozenset({"SIG-PROMPT-010", "SIG-PROMPT-012"})).judgements
    assert {name: judgement.verdict for name, judgement in judgements.items()} == {
        "SIG-PROMPT-010": "PASS",
        "SIG-PROMPT-012": "FAIL",
    }


@pytest.mark.parametrize("before", [True, False])
def test_output_of_a_tool_is_no_turn_of_the_users(before: bool, tmp_path: Path) -> None:
    """A turn of a transcript that holds a memory is what a tool gave back, if the tool was asked by then."""
    recall = {"method": "POST", "path": "/api/memory/recall", "body": {"query": "exports"}}
    tool = [
        step("tool", tool="memory_search"),
        {"request": recall, "response": {"status": 200, "body": {"results": [ROW]}}},
    ]
    told = "User: How are exports named?\nUser: Exports are named by tenant\nand month. (fact)\nAssistant: I do."
    items = [
        *[step("start"), start(), step("prompt", text="How are exports named?", reply="I do.")],
        hook("user-prompt-submit", "k1", userMessage="How are exports named?"),
        *(tool if before else []),
        *[step("end"), hook("session-end", "k1", transcript=told)],
        *([] if before else tool),
    ]
    trace = build(tmp_path / "trace.jsonl", items, shared=False)
    (finding,) = judge(trace, frozenset({"SIG-END-013"})).judgements["SIG-END-013"].findings
    assert finding.fold == ("tool output" if before else "not said")
