"""What a program asked of the model, read from any interface's request into one form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signet_reference_harness.llm_server.script import ApiName, Condition, Match


@dataclass(frozen=True, slots=True)
class AskedMessage:
    """A message of the request. Roles are system, user, assistant and tool, whose message holds a tool's result."""

    role: str
    text: str
    tool_calls: tuple[str, ...] = ()
    tool_call_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As GET /requests shows it; what is absent is left out."""
        shown: dict[str, Any] = {"role": self.role, "text": self.text}
        if self.tool_calls:
            shown["tool_calls"] = list(self.tool_calls)
        if self.tool_call_id is not None:
            shown["tool_call_id"] = self.tool_call_id
        return shown


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to the model; `tools` are the names of those that it may call."""

    api: ApiName
    model: str
    stream: bool
    messages: tuple[AskedMessage, ...]
    tools: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As GET /requests shows it."""
        messages = [message.to_json() for message in self.messages]
        return {"model": self.model, "stream": self.stream, "messages": messages, "tools": list(self.tools)}

    def texts(self, *roles: str) -> tuple[str, ...]:
        """The texts of the messages of these roles; of all without one."""
        return tuple(message.text for message in self.messages if not roles or message.role in roles)

    def meets(self, condition: Condition) -> bool:
        """Whether the request is as a rule wants it."""
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
        results: list[str] = []
        for message in self.messages:
            if message.role == "user":
                results.clear()
            elif message.role == "tool":
                results.append(message.text)
        return tuple(results)


def _holds(text: str, match: Match) -> bool:
    if match.contains is not None and match.contains not in text:
        return False
    return match.matches is None or re.search(match.matches, text) is not None


def text_of(content: Any) -> str:
    """The text of a message's content: a text, or the texts among its blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in objects(content) if isinstance(block.get("text"), str))


def objects(value: Any) -> Sequence[Mapping[str, Any]]:
    """The objects in a list; nothing for anything but a list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def names(values: Iterable[Any]) -> tuple[str, ...]:
    """Those of the values that are texts."""
    return tuple(value for value in values if isinstance(value, str))
