"""Changes of the requests of a broken or odd harness to its model, applied before the provider."""

from __future__ import annotations

import html
import json
import os
import re
import textwrap
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace

from signet_conformance.drivers.model_process import CONTROL_VARIABLE, MODEL_VARIABLE
from signet_conformance.selftest.mutants import Change
from signet_reference_harness.errors import ProviderError
from signet_reference_harness.messages import Message
from signet_reference_harness.providers.completion import CompletionChunk, CompletionOptions, CompletionResult
from signet_reference_harness.providers.scripted import ServedModels
from signet_reference_harness.providers.settings import load, make_provider

API = "ollama-chat"
"""The interface that is asked unless a mutant names another."""
_BASES = {"anthropic-messages": "", "openai-completions": "/v1", "openai-responses": "/v1", "ollama-chat": ""}
_BLOCK = re.compile(r"<system-reminder [^>]*>\n.*?\n</system-reminder>", re.DOTALL)
_PARTS = ("identity", "session-start", "user-prompt-submit", "summary")
"""The blocks of the reference's system prompt, named as in its `metadata`."""


class ChangedModels(ServedModels):
    """Models that are asked what the reference asks, with changes."""

    def __init__(self, changes: Sequence[tuple[str, Change]], environ: Mapping[str, str] = os.environ) -> None:
        api = next((str(change["api"]) for _, change in changes if change["how"] == "api"), API)
        settings = load(
            {"api": api, "base_url": environ[MODEL_VARIABLE] + _BASES[api], "model": "scripted", "api_key": "none"},
            {},
            None,
        )
        super().__init__(environ[CONTROL_VARIABLE], make_provider(settings))
        self._changes = changes
        self._turns = 0
        self._seen: dict[str, list[str]] = {}
        self.applied: set[str] = {name for name, change in changes if change["how"] == "api"}
        """The names of the changes that changed a request."""

    async def ask(
        self, messages: Sequence[Message], options: CompletionOptions, answer: CompletionResult
    ) -> AsyncIterator[CompletionChunk]:
        """Ask the changed question, after questions that a change adds."""
        asked = _Asked(list(messages), options, self._seen)
        self._turns += messages[-1].role == "user"
        for name, change in self._changes:
            if change.get("turn", self._turns) != self._turns:
                continue
            if change["how"] == "silent":
                raise ProviderError("the mutant asks nothing")
            if change["how"] in _BESIDE and messages[-1].role == "user":
                await self._ask_beside(*_BESIDE[change["how"]](asked))
                self.applied.add(name)
            elif change["how"] in _CHANGES and _CHANGES[change["how"]](asked, change):
                self.applied.add(name)
        for part in ("session-start", "user-prompt-submit"):
            seen = self._seen.setdefault(part, [])
            seen += [block for block in asked.known if block == asked.blocks.get(part) and block not in seen]
        async for chunk in super().ask(asked.messages, asked.options, answer):
            yield chunk

    async def _ask_beside(self, messages: Sequence[Message], options: CompletionOptions) -> None:
        async for _ in super().ask(messages, options, CompletionResult(content="A title")):
            pass


class _Asked:
    """One request as it is changed. `known` are the injected blocks that it came with, `earlier` those of each part."""

    def __init__(
        self, messages: list[Message], options: CompletionOptions, earlier: Mapping[str, Sequence[str]]
    ) -> None:
        self.messages = messages
        self.options = options
        self.earlier = earlier
        blocks = _BLOCK.findall(options.system_prompt)
        parts = [row["part"] for row in options.metadata.get("context", ()) if row["part"] in _PARTS]
        self.blocks: dict[str, str] = dict(zip(parts, blocks, strict=False))
        self.known = [block for part, block in self.blocks.items() if part in ("session-start", "user-prompt-submit")]

    def set_system(self, system: str) -> None:
        """Set the system prompt."""
        self.options = replace(self.options, system_prompt=system, stable_prompt=0)

    def append(self, text: str) -> bool:
        """Put a text behind what the user said last."""
        place = max(n for n, message in enumerate(self.messages) if message.role == "user")
        said = self.messages[place]
        self.messages[place] = replace(said, content=f"{said.content}\n\n{text}")
        return True


def _drop(asked: _Asked, change: Change) -> bool:
    """Leave a part of the context out."""
    block = asked.blocks.get(change["of"])
    if block is not None:
        asked.set_system(asked.options.system_prompt.replace(block, ""))
    return block is not None


def _late(asked: _Asked, change: Change) -> bool:
    """Leave it out until the model has called a tool."""
    return asked.messages[-1].role == "user" and _drop(asked, change)


def _double(asked: _Asked, change: Change) -> bool:
    """Put a part of the context beside the user's words, too."""
    block = asked.blocks.get(change["of"])
    return block is not None and asked.append(block)


def _stale(asked: _Asked, change: Change) -> bool:
    """Put what came for an earlier turn in the place of a part."""
    block = asked.blocks.get(change["of"])
    earlier = [each for each in asked.earlier.get(change["of"], ()) if each != block]
    if block is not None and earlier:
        asked.set_system(asked.options.system_prompt.replace(block, earlier[-1]))
    return block is not None and bool(earlier)


def _identity(asked: _Asked, _change: Change) -> bool:
    """Drop what session-start injected, and write down its identity and instructions without it."""
    block = asked.blocks.get("session-start")
    if block is not None:
        own = block.partition("## Relevant Memories")[0]
        asked.set_system(f"You code.\n{own}\n{asked.options.system_prompt.replace(block, '')}")
    return block is not None


def _leak(asked: _Asked, _change: Change) -> bool:
    """Put what was injected into other sessions before the model as well."""
    others = [block for blocks in asked.earlier.values() for block in blocks if block not in asked.known]
    if others:
        asked.set_system("\n\n".join([asked.options.system_prompt, *others]))
    return bool(others)


def _lie(asked: _Asked, change: Change) -> bool:
    """Tell something else of the tool that ran last."""
    last = asked.messages[-1]
    if last.role != "tool":
        return False
    asked.messages[-1] = replace(last, content=str(change["told"]))
    return True


def _into_message(asked: _Asked, _change: Change) -> bool:
    """Put all of the context beside the user's words, and nothing into the system prompt."""
    system = asked.options.system_prompt
    asked.set_system("You are a careful agent.")
    return bool(system) and asked.append(system)


def _rewritten(rewrite: Callable[[str], str]) -> Callable[[_Asked, Change], bool]:
    """Write each block of the system prompt otherwise."""

    def change(asked: _Asked, _change: Change) -> bool:
        before = asked.options.system_prompt
        asked.set_system(_BLOCK.sub(lambda match: rewrite(match[0]), before))
        return asked.options.system_prompt != before

    return change


def _quoted(block: str) -> str:
    lines = (textwrap.wrap(line, 40) or [""] for line in block.splitlines())
    return "\n".join(f"> {piece}" for wrapped in lines for piece in wrapped)


def _shorten(block: str) -> str:
    lines = [line for line in block.splitlines() if line.strip()]
    return "\n".join([*lines[: max(len(lines) * 2 // 3, 2)], "[… truncated, the rest was left out]"])


_CHANGES: Mapping[str, Callable[[_Asked, Change], bool]] = {
    "drop": _drop,
    "late": _late,
    "double": _double,
    "leak": _leak,
    "stale": _stale,
    "identity": _identity,
    "lie": _lie,
    "message": _into_message,
    "merged": _rewritten(lambda block: re.sub(r"</?system-reminder[^>]*>", "", block)),
    "quoted": _rewritten(_quoted),
    "escaped": _rewritten(lambda block: json.dumps({"additionalContext": html.escape(block)})),
    "reversed": _rewritten(lambda block: "\n".join(reversed(block.splitlines()))),
    "shortened": _rewritten(_shorten),
}
_Question = tuple[Sequence[Message], CompletionOptions]
_BESIDE: Mapping[str, Callable[[_Asked], _Question]] = {
    "title": lambda asked: (
        [Message("user", f"Write a short title for a conversation that begins so: {asked.messages[-1].content}")],
        CompletionOptions(system_prompt="You name conversations."),
    ),
    "warm_up": lambda asked: ([Message("user", "Warmup")], CompletionOptions(tools=asked.options.tools)),
    "retry": lambda asked: (asked.messages, asked.options),
}
"""Questions before a turn's own first request."""
