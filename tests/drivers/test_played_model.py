"""Facts about the requests of a played host: what it was given stands where and as long as its face says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from signet_conformance.drivers.played_model import PlayedModel
from signet_conformance.targets.face_parts import AnswerPlaces

MEMORY = "Atlas deploys happen on Friday."
START = {"step": "start", "session": "s1"}


def said(text: str, **more: Any) -> Mapping[str, Any]:
    """A turn of the user."""
    return {"step": "prompt", "session": "s1", "text": text, "reply": f"On {text}.", **more}


def placed(place: str, lasts: str, **more: Any) -> AnswerPlaces:
    """The answers of a host that puts what a hook gives at one place."""
    placement = {"role": "system", "place": place, "lasts": lasts, **more}
    compaction = {"keeps": "prompts", "wrap": "Summary: TEXT"}
    return AnswerPlaces.model_validate(
        {"api": "/v1/messages", "sources": {"hook": [placement]}, "compaction": compaction}
    )


def asked(answers: AnswerPlaces, *steps: Mapping[str, Any]) -> list[list[str]]:
    """The texts of each request's messages; a step's `given` is what the hook says before the model is asked."""
    model, requests = PlayedModel(answers), []
    for step in steps:
        given = [{"source": "hook", "text": text} for text in step.get("given", ())]
        model.begin({name: value for name, value in step.items() if name not in ("given", "result")})
        if step["step"] in ("prompt", "compact"):
            requests += model.asks({"event": "model", "given": given})
            given = []
        requests += model.end({"given": given, **step.get("result", {})})
    return [_texts(request["body"]) for request in requests]


def _texts(body: Mapping[str, Any]) -> list[str]:
    blocks = [block for message in body["messages"] for block in message["content"]]
    own = body["system"].split("\n\n")[1:]
    return [*own, *(str(block.get("text", block.get("content", block.get("name")))) for block in blocks)]


LASTING: Mapping[str, Sequence[list[str]]] = {
    "request": [["A", MEMORY], ["A", "On A.", "B"]],
    "until-compaction": [["A", MEMORY], ["A", MEMORY, "On A.", "B"]],
}


@pytest.mark.parametrize("lasts", LASTING)
def test_a_text_stands_before_the_model_as_long_as_it_lasts(lasts: str) -> None:
    """In one request, or at its place in each later one."""
    answers = placed("after-prompt", lasts)
    assert asked(answers, {**START, "given": [MEMORY]}, said("A"), said("B")) == LASTING[lasts]


def test_a_text_of_a_turn_stands_in_each_of_its_requests() -> None:
    """Also in the one that tells the model what a tool gave back, and in none of the next turn."""
    tool = {"step": "tool", "session": "s1", "tool": "memory_search", "result": {"text": "Found."}}
    answers = placed("before-prompt", "turn")
    turns = asked(answers, START, {**said("A", more=True), "given": [MEMORY]}, tool, said("B"))
    calling = ["A", "memory_search", "Found."]
    assert turns == [[MEMORY, "A"], [MEMORY, *calling], [*calling, "On A.", "B"]]


def test_a_turn_goes_on_with_a_tool_of_the_host_where_the_connector_has_none() -> None:
    """The model is asked again, and what lasts for one request is gone, unless it is given anew."""
    tool = {"step": "tool", "session": "s1", "tool": "memory_search", "result": {"skipped": "no such tool"}}
    answers = placed("end", "request", asked_anew=True)
    once = asked(answers, START, {**said("A", more=True), "given": [MEMORY]}, tool)
    again = asked(answers, START, {**said("A", more=True), "given": [MEMORY]}, {**tool, "given": [MEMORY]})
    assert once == [["A", MEMORY], ["A", "read_file", "# README"]]
    assert again == [["A", MEMORY], ["A", "read_file", "# README", MEMORY]]


def test_a_tool_that_is_skipped_outside_of_a_turn_asks_no_model() -> None:
    """Only a turn that is under way goes on."""
    tool = {"step": "tool", "session": "s1", "tool": "memory_search", "result": {"skipped": "no such tool"}}
    assert asked(placed("end", "request"), START, said("A"), tool) == [["A"]]


@pytest.mark.parametrize(("anew", "expected"), [(False, "request"), (True, "turn")])
def test_a_recording_says_how_long_a_turn_s_texts_can_stand(anew: bool, expected: str) -> None:
    """What the host asks for before each request stands as long as the connector gives it."""
    assert placed("end", "request", asked_anew=anew).in_header()["lasts"] == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("system", [MEMORY, "A"]),
        ("after-system", [MEMORY, "A"]),
        ("before-prompt", [MEMORY, "A"]),
        ("after-prompt", ["A", MEMORY]),
        ("end", ["A", MEMORY]),
        ("prompt-begin", [f"{MEMORY}\n\nA"]),
        ("prompt-end", [f"A\n\n{MEMORY}"]),
    ],
)
def test_a_text_stands_where_the_face_says(place: str, expected: list[str]) -> None:
    """In the system text, in a message of its own, or within what the user said."""
    assert asked(placed(place, "request"), {**START, "given": [MEMORY]}, said("A")) == [expected]


def test_texts_that_share_a_message_stand_in_their_order() -> None:
    """Where the host writes one message for all of them."""
    first = {"role": "system", "place": "after-prompt", "lasts": "turn", "shared": True}
    sources = {"early": [{**first, "order": 1}], "late": [{**first, "order": 2}]}
    model = PlayedModel(AnswerPlaces.model_validate({"api": "/v1/responses", "sources": sources}))
    model.begin(said("A"))
    given = [{"source": "late", "text": "two"}, {"source": "early", "text": "one"}]
    (request,) = model.asks({"given": given})
    assert [item["content"][0]["text"] for item in request["body"]["input"]] == ["A", "one\n\ntwo"]
    assert request["body"]["input"][1]["role"] == "developer"


def test_what_a_compaction_leaves() -> None:
    """The summary and what the face says it keeps; a text that lasts until then is gone."""
    compact = {"step": "compact", "session": "s1", "summary": "It went well."}
    turns = asked(
        placed("after-prompt", "until-compaction"), START, {**said("A"), "given": [MEMORY]}, compact, said("B")
    )
    assert turns[-1] == ["Summary: It went well.", "A", "B"]


def test_a_clear_and_another_session_begin_anew() -> None:
    """Nothing of what was said or given before stands before the model."""
    answers = placed("after-prompt", "session")
    begun = [{**START, "given": [MEMORY]}, said("A")]
    assert asked(answers, *begun, {"step": "clear", "session": "s1"}, said("B"))[-1] == ["B"]
    assert asked(answers, *begun, {**said("B"), "session": "s2"})[-1] == ["B"]


def test_what_the_host_says_first_opens_each_conversation() -> None:
    """Before what a connector gives there; it is kept in a compaction, and said again after a clear."""
    answers = placed("before-prompt", "until-compaction").model_copy(update={"opening": "Here."})
    turns = asked(answers, {**START, "given": [MEMORY]}, said("A"), {"step": "clear", "session": "s1"}, said("B"))
    assert turns == [["Here.", MEMORY, "A"], ["Here.", "B"]]
    assert asked(answers, START, said("A"), {"step": "compact", "session": "s1", "summary": "It went."}, said("B"))[
        -1
    ] == ["Summary: It went.", "Here.", "A", "B"]


def test_a_prompt_that_is_blocked_is_never_asked() -> None:
    """It stands in no later request either."""
    model = PlayedModel(placed("after-prompt", "turn"))
    model.begin(said("A"))
    assert list(model.end({"turn": False})) == []
    model.begin(said("B"))
    (request,) = model.asks({})
    assert _texts(request["body"]) == ["B"]


def test_what_the_face_does_not_name_reaches_no_model() -> None:
    """Nothing is guessed of an answer whose way nobody has seen."""
    answers = AnswerPlaces.model_validate({"api": "/v1/messages", "sources": {"hook": []}})
    assert asked(answers, {**START, "given": [MEMORY]}, said("A")) == [["A"]]


def test_requests_beside_the_turn_take_what_is_given_for_them() -> None:
    """A title is asked for without tools, and leaves no trace in the conversation."""
    model = PlayedModel(placed("after-system", "request"))
    model.begin(said("A"))
    title, turn = model.asks({"beside": [{"for": "title", "given": [{"source": "hook", "text": MEMORY}]}]})
    assert title["body"]["tools"] == []
    assert _texts(title["body"])[0] == MEMORY
    assert _texts(turn["body"]) == ["A"]


def test_nothing_is_asked_where_the_program_refuses_what_was_installed() -> None:
    """The kit's host uses it all the same, so that its other faults are seen; no model would be told of it."""
    model = PlayedModel(placed("after-prompt", "turn"))
    model.begin(said("A", more=True))
    assert list(model.asks({"refused": True, "given": [{"source": "hook", "text": MEMORY}]})) == []
    model.begin({"step": "tool", "session": "s1", "tool": "memory_search"})
    assert list(model.end({"text": "Found."})) == []


def test_nothing_is_said_of_a_session_in_which_an_unknown_source_gave_something() -> None:
    """Where its text stands, and for how long, nobody has seen: the body of the request is left out."""
    model = PlayedModel(placed("after-prompt", "turn"))
    for session, source in (("s1", "PostToolUse"), ("s2", "hook")):
        model.begin({**said("A"), "session": session})
        (request,) = model.asks({"given": [{"source": source, "text": MEMORY}]})
        assert (request["body"] is None) is (session == "s1")


@pytest.mark.parametrize(
    ("keeps", "expected"),
    [("nothing", []), ("prompts", ["A", "B"]), ("last-turn", ["B", "On B."]), ("last-reply", ["On B."])],
)
def test_a_compaction_keeps_what_the_face_says(keeps: str, expected: list[str]) -> None:
    """Beside the summary, and the question that the host puts before it."""
    compaction = {"keeps": keeps, "role": "assistant", "question": "What did we do?"}
    answers = AnswerPlaces.model_validate({"api": "/v1/messages", "sources": {}, "compaction": compaction})
    compact = {"step": "compact", "session": "s1", "summary": "It went well."}
    told = asked(answers, START, said("A"), said("B"), compact, said("C"))[-1]
    assert told == ["What did we do?", "It went well.", *expected, "C"]


def test_what_a_host_says_of_the_user_s_words_stands_in_their_place() -> None:
    """A connector that changes them is seen so; their place in the history is the same."""
    model = PlayedModel(placed("prompt-end", "request"))
    model.begin(said("A"))
    (request,) = model.asks({"said": "[16:00] A", "given": [{"source": "hook", "text": MEMORY}]})
    assert _texts(request["body"]) == [f"[16:00] A\n\n{MEMORY}"]


def test_system_text_for_the_session_stays_beside_what_comes_later() -> None:
    """A host that asks for it again has both."""
    steps = [{**START, "given": [MEMORY]}, said("A"), {**said("B"), "given": ["Another text."]}]
    assert asked(placed("system", "session"), *steps)[-1] == [MEMORY, "Another text.", "A", "On A.", "B"]


def test_only_the_word_in_a_pattern_stands_for_the_text() -> None:
    """Not the same letters within another word."""
    answers = placed("after-prompt", "request", wrap="[CONTEXT] TEXT (TEXT)")
    assert asked(answers, {**START, "given": [r"a\1"]}, said("A")) == [["A", r"[CONTEXT] a\1 (a\1)"]]


def test_the_way_back_leads_to_what_a_clear_or_a_fork_has_left() -> None:
    """A fork goes on in a copy: what is said there stands in neither of the others."""
    answers = placed("after-prompt", "until-compaction")
    begun = [{**START, "given": [MEMORY]}, said("A")]
    back = {"step": "reopen", "session": "s1"}
    assert asked(answers, *begun, {"step": "fork", "session": "s1"}, said("B"))[-1] == ["A", MEMORY, "On A.", "B"]
    for leaving in ("clear", "fork"):
        told = asked(answers, *begun, {"step": leaving, "session": "s1"}, said("B"), back, said("C"))
        assert told[-1] == ["A", MEMORY, "On A.", "C"]
