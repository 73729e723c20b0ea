"""Chooses the turn of the script that answers a request."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from msgspec import Struct, to_builtins

from signet_reference_harness.llm_server.requests import wait_until
from signet_reference_harness.llm_server.script import ApiName, Condition, ErrorAnswer, Match, Script, ScriptedTurn
from signet_reference_harness.messages import objects


class RequestMessage(Struct, frozen=True, omit_defaults=True):
    """A message of the request. Roles are system, user, assistant and tool, whose message holds a tool's result."""

    role: str
    text: str
    tool_calls: tuple[str, ...] = ()
    tool_call_id: str | None = None


class ScriptedRequest(Struct, frozen=True):
    """A request to the model; `tools` are the names of the tools that it may call."""

    api: ApiName
    model: str
    stream: bool
    messages: tuple[RequestMessage, ...]
    tools: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The request as GET /requests shows it."""
        return {name: to_builtins(getattr(self, name)) for name in ("model", "stream", "messages", "tools")}

    def texts(self, *roles: str) -> tuple[str, ...]:
        """The texts of the messages of these roles; without a role, of all messages."""
        return tuple(message.text for message in self.messages if not roles or message.role in roles)

    def meets(self, condition: Condition) -> bool:
        """Whether the request meets the condition of a rule."""
        facts = (
            (condition.api, self.api),
            (condition.model, self.model),
            (condition.stream, self.stream),
            (condition.after_tool, bool(self.messages) and self.messages[-1].role == "tool"),
        )
        if any(wanted is not None and wanted != fact for wanted, fact in facts):
            return False
        if condition.offers_tool is not None and condition.offers_tool not in self.tools:
            return False
        places = (
            (condition.last_user, self.texts("user")[-1:]),
            (condition.system, self.texts("system")),
            (condition.tool_result, self._last_results()),
            (condition.anywhere, self.texts()),
        )
        return all(match is None or any(_holds(text, match) for text in texts) for match, texts in places)

    def _last_results(self) -> tuple[str, ...]:
        newest = takewhile(lambda message: message.role != "user", reversed(self.messages))
        return tuple(message.text for message in newest if message.role == "tool")


def _holds(text: str, match: Match) -> bool:
    if match.contains is not None and match.contains not in text:
        return False
    return match.matches is None or re.search(match.matches, text) is not None


def text_of(content: Any) -> str:
    """The text of a message's content, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in objects(content) if isinstance(block.get("text"), str))


def names(values: Iterable[Any]) -> tuple[str, ...]:
    """The values that are texts."""
    return tuple(value for value in values if isinstance(value, str))


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """A turn, and its place in the script: turns/2, rules/0, or its own name."""

    turn: ScriptedTurn
    place: str


class Playback:
    """A script while it plays: each request gets one turn."""

    def __init__(self, script: Script) -> None:
        self._begin(script)
        self._changed = asyncio.Condition()

    async def replace(self, script: Script) -> None:
        """Play another script from its beginning, and wake the requests that wait for a turn."""
        async with self._changed:
            self._begin(script)
            self._changed.notify_all()

    def _begin(self, script: Script) -> None:
        self.script = script
        self.left = deque(_place(script.turns, 0))
        """The turns that were not played yet."""
        self._added = len(script.turns)
        self._addressed: dict[int, deque[PlayedTurn]] = {}
        self._last: PlayedTurn | None = None
        self._rule_uses = [0] * len(script.rules)

    async def add(self, turns: tuple[ScriptedTurn, ...], request: int | None = None) -> None:
        """Append turns to the script, or to those for one `request`, and wake the requests that wait."""
        async with self._changed:
            waiting = self.left if request is None else self._addressed.setdefault(request, deque())
            waiting.extend(_place(turns, self._added))
            self._added += len(turns)
            self._changed.notify_all()

    def turn_by_rule(self, asked: ScriptedRequest) -> PlayedTurn | None:
        """The turn of the first rule that a request meets, or None. This counts as a use of the rule."""
        for number, rule in enumerate(self.script.rules):
            if (rule.times is None or self._rule_uses[number] < rule.times) and asked.meets(rule.when):
                self._rule_uses[number] += 1
                return PlayedTurn(rule.turn, rule.turn.name or f"rules/{number}")
        return None

    async def next(self, request: int) -> PlayedTurn:
        """The turn for a request that meets no rule: one that was added for it, else the next in order."""
        if self._must_wait(request):
            await wait_until(lambda: not self._must_wait(request), self._changed, self.script.wait_ms / 1000)
        if addressed := self._addressed.get(request):
            return addressed.popleft()
        if self.left:
            self._last = self.left.popleft()
            return self._last
        if self.script.when_out == "repeat" and self._last is not None:
            return self._last
        return PlayedTurn(
            ScriptedTurn(error=ErrorAnswer(status=500, type="script_ended", message=self._end_message())), "ended"
        )

    def _must_wait(self, request: int) -> bool:
        return self.script.when_out == "wait" and not self.left and not self._addressed.get(request)

    def _end_message(self) -> str:
        if self.script.when_out == "wait":
            return f"the script has no turn left, and none was added within {self.script.wait_ms:g} ms: POST /turns"
        return (
            f"the script has no turn left: it had {self._added}, and no rule is meant for this request; "
            'add a turn, or write "when_out": "repeat"'
        )


def _place(turns: Iterable[ScriptedTurn], first: int) -> list[PlayedTurn]:
    return [PlayedTurn(turn, turn.name or f"turns/{number}") for number, turn in enumerate(turns, first)]
