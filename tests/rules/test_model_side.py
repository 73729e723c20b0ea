"""Facts about what reaches the model: each requirement with requests that keep it, that breach it, and odd ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from signet_conformance.contract import harness_requirements
from signet_conformance.engine import exit_status, judge
from signet_conformance.finding import Reason, Side, Verdict
from signet_conformance.rules import harness_rules
from tests.support.case_traces import build

from .model_requests import ASKED, EXAMPLES, FACT, INJECTED, Item, anthropic, asking, example, judged, model, of


@pytest.mark.parametrize("name", harness_rules())
def test_the_example_of_a_requirement_breaches_it_and_no_other(name: str, tmp_path: Path) -> None:
    """A requirement's own example is found in breach, at its level, on the harness's side; the others stand."""
    outcome = judged(tmp_path, EXAMPLES[name], **(harness_requirements()[name].example_context or {})).harness
    breached = {other: judgement.verdict for other, judgement in outcome.items() if judgement.findings}
    assert breached == {name: Verdict.FAIL if harness_requirements()[name].level == "MUST" else Verdict.WARN}
    assert {finding.side for finding in outcome[name].findings} == {Side.HARNESS}


def test_every_requirement_has_a_rule_in_the_order_of_the_catalogue() -> None:
    """The table of rules and the file of requirements name the same ids."""
    assert list(harness_rules()) == list(harness_requirements())


def test_a_finding_names_the_requests_to_the_model(tmp_path: Path) -> None:
    """The numbers of the model's recording stand apart from those of the daemon's."""
    (finding,) = of(tmp_path, 1, example(1)).findings
    assert (finding.exchanges, finding.model) == ((2,), (5,))


def test_without_a_recording_of_the_model_nothing_is_subject(tmp_path: Path) -> None:
    """A recording of the daemon's side alone says how to get the other, and its status does not change."""
    items = [item for item in example(1) if "side" not in item]
    outcome = judged(tmp_path, items)
    assert {judgement.reason for judgement in outcome.harness.values()} == {Reason.NO_SUBJECT}
    assert all("--harness real" in judgement.message for judgement in outcome.harness.values())


def test_a_breach_changes_no_verdict_of_the_connector(tmp_path: Path) -> None:
    """The connector's judgements, and with them the status, are the same with and without the model's side."""
    with_model = judged(tmp_path, example(8))
    (tmp_path / "run.model.jsonl").unlink()
    alone = judged(tmp_path, [item for item in example(8) if "side" not in item])
    assert with_model.harness["SIG-MODEL-008"].verdict is Verdict.FAIL
    assert set(with_model.verdicts) == set(alone.verdicts)
    assert not any(name.startswith("SIG-MODEL") for name in with_model.verdicts)
    assert exit_status(list(with_model.verdicts.values())) == exit_status(list(alone.verdicts.values()))


def test_other_steps_on_the_models_side_decide_nothing(tmp_path: Path) -> None:
    """Where the two recordings have other step marks, no request can be told to belong to a turn."""
    build(tmp_path / "run.jsonl", example(1))
    file = tmp_path / "run.model.jsonl"
    file.write_bytes(b"".join(line for line in file.read_bytes().splitlines(True) if b'"index":1' not in line))
    from signet_conformance.trace import read

    assert {j.verdict for j in judge(read(tmp_path / "run.jsonl")).harness.values()} == {Verdict.NOT_APPLICABLE}


# -- what holds an injected text

HOLDING: Mapping[str, Callable[[str], Item]] = {
    "system text": lambda text: anthropic(ASKED, text),
    "system blocks": lambda text: anthropic(ASKED, [{"type": "text", "text": each} for each in ("You code.", text)]),
    "beside the prompt": lambda text: anthropic(f"<system-reminder>\n{text}\n</system-reminder>\n{ASKED}"),
    "a message before": lambda text: anthropic(
        "", messages=[{"role": "user", "content": [{"type": "text", "text": text}]}, {"role": "user", "content": ASKED}]
    ),
    "escaped JSON": lambda text: anthropic(ASKED, json.dumps({"additionalContext": text})),
    "HTML": lambda text: anthropic(ASKED, text.replace("'", "&#39;").replace("\n", "<br>")),
    "wrapped and quoted": lambda text: anthropic(ASKED, "> " + text.replace(" at ", "\n>  at ").replace(" 5", "\n> 5")),
    "shortened": lambda text: anthropic(ASKED, f"{text[:60]} … [truncated, 900 more characters] {text}"),
    "upper case": lambda text: anthropic(ASKED, text.upper()),
    "chat completions": lambda text: model(
        {"messages": [
            {"role": "developer", "content": text}, {"role": "user", "content": [{"type": "text", "text": ASKED}]},
        ]},
        "/v1/chat/completions",
    ),
    "responses": lambda text: model(
        {"instructions": "You code.", "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]},
            {"role": "user", "content": ASKED},
        ]},
        "/openai/v1/responses",
    ),
    "responses instructions": lambda text: model({"instructions": text, "input": ASKED}, "/v1/responses"),
    "ollama chat": lambda text: model(
        {"messages": [{"role": "system", "content": text}, {"role": "user", "content": ASKED}]}, "/api/chat"
    ),
    "ollama generate": lambda text: model({"system": text, "prompt": ASKED}, "/api/generate"),
}  # fmt: skip


@pytest.mark.parametrize("how", HOLDING)
@pytest.mark.parametrize(("number", "text"), [(1, INJECTED), (2, FACT)])
def test_an_injected_text_is_recognised(number: int, text: str, how: str, tmp_path: Path) -> None:
    """Wherever a program puts it, in each vendor's format, wrapped and escaped, it is before the model, once."""
    outcome = judged(tmp_path, asking(number, HOLDING[how](text))).harness
    assert outcome[f"SIG-MODEL-{number:03d}"].verdict is Verdict.PASS
    assert outcome["SIG-MODEL-003"].verdict is Verdict.PASS


ODD: Mapping[str, Sequence[Item]] = {
    "a title before": [anthropic(f"Write a title for: {ASKED}", tools=False), anthropic(ASKED, INJECTED)],
    "a topic after": [anthropic(ASKED, INJECTED), anthropic(ASKED, "Is this a new topic?", tools=False)],
    "a warm-up": [anthropic("Warmup", "You are ready."), anthropic(ASKED, INJECTED)],
    "tokens counted": [
        model({"messages": [{"role": "user", "content": ASKED}]}, "/v1/messages/count_tokens"),
        anthropic(ASKED, INJECTED),
    ],
    "a list of models": [
        {"side": "model", "request": {"method": "GET", "path": "/v1/models", "body": None}}, anthropic(ASKED, INJECTED),
    ],
    "a retry": [{**anthropic(ASKED, INJECTED), "response": {"status": 529, "body": {}}}, anthropic(ASKED, INJECTED)],
    "a sub-agent asked first": [
        anthropic(f"You plan. The user says: {ASKED}"), anthropic(ASKED, INJECTED),
    ],
}  # fmt: skip


@pytest.mark.parametrize("how", ODD)
def test_what_stands_beside_the_turn_is_not_blamed(how: str, tmp_path: Path) -> None:
    """Titles, topics, warm-ups, counts and retries beside a right request break nothing."""
    outcome = judged(tmp_path, asking(1, *ODD[how])).harness
    assert {j.requirement for j in outcome.values() if j.findings} == set()
    assert outcome["SIG-MODEL-001"].verdict is Verdict.PASS


@pytest.mark.parametrize(
    "body",
    [
        {"raw_body": {"cut": True, "size": 9, "sha256": "0" * 64}},
        {"raw_body": {"base64": "KLUv/SA=", "media_type": "application/json"}},
        {"body": {"messages": [{"role": "user", "content": "Something else entirely"}]}},
    ],
    ids=["cut", "compressed", "not the turn's"],
)
def test_what_cannot_be_read_decides_nothing(body: Item, tmp_path: Path) -> None:
    """A body that was cut or is in a coding of its own, and a turn without a request of its own, leave it open."""
    unread = {"side": "model", "request": {"method": "POST", "path": "/v1/messages", **body}}
    assert of(tmp_path, 1, asking(1, unread)).verdict is Verdict.INCONCLUSIVE


def test_a_part_of_many_lines_is_left_open(tmp_path: Path) -> None:
    """One line of several, and no word that something was left out, decides nothing; half of them is enough."""
    items = example(1)
    lines = [f"- Memory number {word} is about the billing service." for word in ("one", "two", "three", "four")]
    items[1]["response"]["body"]["inject"] = "\n".join(lines)
    for kept, verdict in (
        (lines[:1], Verdict.INCONCLUSIVE),
        (lines[:2], Verdict.PASS),
        (reversed(lines), Verdict.PASS),
    ):
        items[-1] = anthropic(ASKED, "\n".join(kept))
        assert of(tmp_path, 1, items).verdict is verdict


def test_context_that_comes_later_in_the_turn_is_a_breach(tmp_path: Path) -> None:
    """A request that goes on with the first one, and only then holds the text, comes too late."""
    result = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": "Let me look."}]
    outcome = of(tmp_path, 2, asking(2, anthropic(ASKED), anthropic("", FACT, messages=result)))
    assert (outcome.verdict, outcome.findings[0].model) == (Verdict.WARN, (5, 6))
    assert "only later in the turn" in outcome.message


def test_context_that_only_a_title_was_given_is_a_breach(tmp_path: Path) -> None:
    """Where a request beside the turn's own took what was injected, the finding names both."""
    title = anthropic(f"Write a title for: {ASKED}", INJECTED, tools=False)
    outcome = of(tmp_path, 1, asking(1, title, anthropic(ASKED)))
    assert (outcome.verdict, outcome.findings[0].model) == (Verdict.WARN, (6, 5))
    assert "beside the turn's own, such as for a title" in outcome.message


def test_a_start_of_no_session_gives_nothing(tmp_path: Path) -> None:
    """What a connector asks without a key, while it is loaded, need not be there where sessions have keys."""
    items = example(1)
    loading = copy.deepcopy(items[1])
    loading["request"]["body"].pop("sessionKey")
    loading["response"]["body"]["inject"] = "The loading of the plugin brought another text."
    items[-1] = anthropic(ASKED, INJECTED)
    assert of(tmp_path, 1, [items[0], loading, *items[1:]]).verdict is Verdict.PASS


def test_a_stub_and_what_was_cleared_need_not_be_there(tmp_path: Path) -> None:
    """A start that was answered before, or whose context the user took away, is no subject."""
    items = example(1)
    stub = copy.deepcopy(items[1])
    stub["response"]["body"] = {
        "inject": "[memory active | /remember | /recall]\nSunday",
        "memories": [],
        "identity": {"name": "Agent"},
    }
    assert of(tmp_path, 1, [items[0], stub, *items[2:]]).verdict is Verdict.NOT_APPLICABLE


def test_history_repeats_what_was_injected(tmp_path: Path) -> None:
    """A text of an earlier turn stands in the history of a later one, once for each time that it was given."""
    items = example(2)
    again = [
        {
            "mark": "step",
            "data": {"index": 2, "step": "prompt", "session": "s1", "text": "Say it again.", "reply": "Fri."},
        },
        {
            **items[3],
            "request": {**items[3]["request"], "body": {**items[3]["request"]["body"], "userMessage": "Say it again."}},
        },
    ]
    history = [
        {"role": "user", "content": f"{FACT}\n{ASKED}"}, {"role": "assistant", "content": f"I know: {FACT}"},
        {"role": "user", "content": f"{FACT}\nSay it again."},
    ]  # fmt: skip
    head = [*items[:4], anthropic(f"{FACT}\n{ASKED}", INJECTED), *again]
    assert of(tmp_path, 3, [*head, anthropic("", INJECTED, messages=history)]).verdict is Verdict.PASS
    thrice = [*history[:2], {"role": "user", "content": f"{FACT}\n{FACT}\nSay it again."}]
    assert of(tmp_path, 3, [*head, anthropic("", INJECTED, messages=thrice)]).verdict is Verdict.WARN


def test_what_two_hooks_were_told_may_stand_twice(tmp_path: Path) -> None:
    """A day that start and prompt both tell, as release 0.58 does, stands once for each of them."""
    day = "# Current Date & Time\nFriday, November 27, 2026 at 12:14 AM (UTC)"
    items = example(2)[:4]
    for item, inject in ((items[1], f"{INJECTED}\n\n{day}"), (items[3], day)):
        item["response"]["body"]["inject"] = inject
    twice = f"{INJECTED}\n\n{day}\n\n{day}\n{ASKED}"
    assert of(tmp_path, 3, [*items, anthropic(twice, "")]).verdict is Verdict.PASS
    assert of(tmp_path, 3, [*items, anthropic(f"{day}\n{twice}", "")]).verdict is Verdict.WARN


def test_a_result_of_a_tool_is_no_second_place(tmp_path: Path) -> None:
    """What the model says, or a tool returns, may hold the same memory."""
    messages = [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "memory_search", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": INJECTED}]},
    ]
    assert of(tmp_path, 3, asking(3, anthropic("", INJECTED, messages=messages))).verdict is Verdict.PASS


@pytest.mark.parametrize("number", [4, 5])
def test_what_the_daemon_says_to_both_sessions_is_no_leak(number: int, tmp_path: Path) -> None:
    """A line that an answer brought to the session itself, by whatever call, is its own."""
    items = example(number)
    own = copy.deepcopy(items[-2])
    own["response"]["body"]["inject"] = FACT
    assert not of(tmp_path, number, [*items[:-2], own, items[-1]]).findings


@pytest.mark.parametrize("number", [4, 5])
def test_a_request_that_may_be_of_either_session_is_left_open(number: int, tmp_path: Path) -> None:
    """Where the user said the same in both sessions, a late request of the first is not told from the second's."""
    text = json.dumps(example(number)).replace("Rename the flag.", ASKED).replace("Close the month.", ASKED)
    assert of(tmp_path, number, json.loads(text)).verdict is not Verdict.WARN


def test_a_hook_whose_bound_has_passed_may_be_left(tmp_path: Path) -> None:
    """The model may be asked before the hook ends once the declared bound has passed, and not at all before."""
    items = example(6)
    assert of(tmp_path, 6, items, declared={"bounds_s": {"prompt": 0.1}}).verdict is Verdict.PASS
    assert of(tmp_path, 6, items, declared={}).verdict is Verdict.INCONCLUSIVE
    items[-1] |= {"t0": 4.58}
    assert of(tmp_path, 6, items).verdict is Verdict.PASS
    items[-1] |= {"t0": 3.9}
    assert "has begun" in of(tmp_path, 6, items, declared={}).message


def test_a_turn_without_the_daemon_is_answered_in_time(tmp_path: Path) -> None:
    """With the daemon away an answer passes, and one that comes past the declared bounds warns, where they are."""
    items = example(8)
    away = max(
        place for place, item in enumerate(items) if item.get("mark") == "step" and item["data"]["step"] == "prompt"
    )
    text = items[away]["data"]["text"]
    # The first turn of a session, for which a program starts, is nothing to compare with.
    more = [
        {"mark": "step", "data": {**items[away]["data"], "index": 9, "text": "Then tag it."}},
        anthropic("Then tag it."),
    ]
    items += [more[0], {**more[1], "t0": 11.0}]
    answered = [*items[: away + 1], {**anthropic(text, INJECTED), "t0": 9.1}, *items[away + 1 :]]
    passed = of(tmp_path, 8, answered)
    assert (passed.verdict, passed.findings) == (Verdict.PASS, ())
    assert passed.message.endswith("while the daemon does not run, asked 2.1 s later than otherwise")
    late = [*items[: away + 1], {**anthropic(text, INJECTED), "t0": 39.1}, *items[away + 1 :]]
    assert of(tmp_path, 8, late).verdict is Verdict.WARN
    assert of(tmp_path, 8, late, declared={}).verdict is Verdict.PASS


def test_a_turn_that_no_model_ever_answers_is_not_the_daemons_absence(tmp_path: Path) -> None:
    """Where the model was not asked in other turns either, that it is not with the daemon away says nothing."""
    items = [item for item in example(8) if "side" not in item]
    items.append(model({"messages": []}))
    assert of(tmp_path, 8, items).verdict is Verdict.INCONCLUSIVE


def test_a_summary_is_recognised_and_history_is_no_breach(tmp_path: Path) -> None:
    """The summary may stand anywhere in the request; where the conversation still stands there, nothing is decided."""
    summary = next(item for item in example(9) if "compact" in item.get("request", {}).get("path", ""))
    told = summary["request"]["body"]["summary"]
    text = "And who approves refunds?"
    held = anthropic("", messages=[{"role": "user", "content": f"Summary:\n{told}"}, {"role": "user", "content": text}])
    assert of(tmp_path, 9, asking(9, held)).verdict is Verdict.PASS
    kept = anthropic("", messages=[{"role": "user", "content": ASKED}, {"role": "user", "content": text}])
    assert of(tmp_path, 9, asking(9, kept)).verdict is Verdict.INCONCLUSIVE
