"""Facts about what the broken and the odd harness put before their model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from signet_conformance.contract import document
from signet_conformance.rules.model.requests import count_lines, marker_lines, padded
from signet_conformance.selftest import harness
from signet_conformance.selftest.harness import ChangedModels, ServedModels
from signet_reference_harness.errors import ProviderError
from signet_reference_harness.messages import Message, Reminder, render_reminders
from signet_reference_harness.providers import CompletionChunk, CompletionOptions, CompletionResult

START, PROMPT = "Atlas deploys happen on Friday.\nAsk Mira before a change.", "Refunds over 500 EUR need approval."
Question = tuple[Sequence[Message], CompletionOptions]


class _Kept:
    """A provider that keeps what it is asked."""

    id = "kept"

    def __init__(self) -> None:
        self.asked: list[Question] = []

    async def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        self.asked.append((messages, options))
        yield CompletionChunk("", result=CompletionResult(content="Yes."))


class _Unscripted(ChangedModels):
    """The changed models in front of a provider that needs no script."""

    def __init__(self, kept: Any, *changes: Mapping[str, Any]) -> None:
        ServedModels.__init__(self, "http://127.0.0.1:1", kept)
        self._changes = [(f"change-{number}", change) for number, change in enumerate(changes)]
        self._turns, self._injected, self.applied = 0, {}, set()

    async def script(self, answer: CompletionResult) -> None:
        """Tell nobody."""


def question(*messages: Message, start: str = START, prompt: str = PROMPT) -> Question:
    """What the reference asks, with what two hooks injected."""
    kind, origin = "context", "daemon"
    blocks = [Reminder(kind=kind, origin=origin, text=text) for text in (start, prompt) if text]
    parts = [{"part": part} for part, text in (("session-start", start), ("user-prompt-submit", prompt)) if text]
    options = CompletionOptions(system_prompt=render_reminders(blocks), metadata={"context": parts})
    return messages or (Message("user", "When?"),), options


def asked(*questions: Question, changes: Sequence[Mapping[str, Any]]) -> list[Question]:
    """What arrives at the provider of these questions."""
    kept = _Kept()
    made = _Unscripted(kept, *changes)

    async def ask() -> None:
        for messages, options in questions:
            async for _ in made.ask(messages, options, CompletionResult(content="Yes.")):
                pass

    asyncio.run(ask())
    return kept.asked


def told(asked: Question) -> str:
    """All that one question tells the model."""
    return padded([asked[1].system_prompt, *(message.content for message in asked[0])])


def test_every_change_of_the_schema_is_made_and_no_other() -> None:
    """What `how` may be in schemas/mutants.schema.json is what the module does."""
    known = document("mutants.schema.json")["$defs"]["model"]["properties"]["how"]["enum"]
    assert sorted(known) == sorted({*harness._CHANGES, *harness._BESIDE, "silent", "api"})


@pytest.mark.parametrize("how", ["message", "merged", "quoted", "escaped", "reversed", "shortened"])
def test_an_odd_harness_still_tells_what_was_injected(how: str) -> None:
    """However it is written, at least half of the lines of both texts stand there."""
    (found,) = asked(question(), changes=[{"how": how}])
    assert found[1].system_prompt != question()[1].system_prompt
    assert all(count_lines(marker_lines(text), told(found)).mostly for text in (START, PROMPT))


def test_a_broken_harness_drops_doubles_and_leaks() -> None:
    """A dropped text is gone, a doubled one stands twice, a leaked one is that of the question before."""
    (dropped,) = asked(question(), changes=[{"how": "drop", "of": "session-start"}])
    assert count_lines(marker_lines(START), told(dropped)).absent
    assert count_lines(marker_lines(PROMPT), told(dropped)).mostly
    (doubled,) = asked(question(), changes=[{"how": "double", "of": "user-prompt-submit"}])
    assert told(doubled).count("refunds over 500") == 2
    _, leaked = asked(question(), question(start="", prompt="Ledgers close in May."), changes=[{"how": "leak"}])
    assert count_lines(marker_lines(START), told(leaked)).mostly


def test_what_comes_late_comes_with_the_result_of_a_tool() -> None:
    """The first question of a turn lacks it, the one that tells of a tool has it."""
    after = (Message("user", "When?"), Message("assistant", ""), Message("tool", "{}", tool_call_id="c1"))
    first, second = asked(question(), question(*after), changes=[{"how": "late", "of": "session-start"}])
    assert count_lines(marker_lines(START), told(first)).absent
    assert count_lines(marker_lines(START), told(second)).mostly


def test_a_lie_takes_the_place_of_a_result_in_its_turn() -> None:
    """The result of the second turn is replaced, that of the first is not."""
    after = (Message("user", "When?"), Message("tool", "found", tool_call_id="c1"))
    change = {"how": "lie", "told": "nothing", "turn": 2}
    results = asked(question(), question(*after), question(), question(*after), changes=[change])
    assert [answered[0][-1].content for answered in results] == ["When?", "found", "When?", "nothing"]


@pytest.mark.parametrize(("how", "text"), [("title", "Write a short title"), ("warm_up", "Warmup"), ("retry", "When?")])
def test_what_is_asked_beside_comes_first(how: str, text: str) -> None:
    """One more question stands before the turn's own."""
    beside, own = asked(question(), changes=[{"how": how}])
    assert text in beside[0][-1].content
    assert (tuple(own[0]), own[1]) == question()


def test_a_silent_harness_asks_nothing_in_its_turn() -> None:
    """In the turn that it names the model is not asked at all."""
    with pytest.raises(ProviderError):
        asked(question(), changes=[{"how": "silent", "turn": 1}])
