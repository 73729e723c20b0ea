"""The requests of a played host to its model: it keeps each session's conversation, and writes it as the host would.

The host's face says where a connector's answers go. The model's replies are those of the scenario.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from signet_conformance.files.json_values import objects_in
from signet_conformance.targets.face_parts import AnswerPlaces, Compaction, Placement, wrap_text
from signet_conformance.trace.marks import StepName

_REPLY = "Understood."
"""The model's answer where the scenario gives none."""
_SYSTEM = "You are an agent that works in the user's folder."
_OWN_TOOL = "read_file"
"""A tool of the host's own: requests for titles and summaries offer none."""
_USE_OF_OWN_TOOL = {"tool": _OWN_TOOL, "arguments": {"path": "README.md"}}
_QUESTIONS = {
    "title": "Write a short title for this conversation.",
    "compaction": "Write a summary of this conversation, to go on from.",
}
_COMPACTING = (StepName.COMPACT, StepName.PRE_COMPACTION, StepName.COMPACTION_COMPLETE)


@dataclass(slots=True)
class _Message:
    """One message of a conversation. `prompt`: it is the user's. `call` is the id of a tool's call.

    `pieces` are its texts, each with its rank and how long it lasts: the user's own text has rank 0.
    """

    role: str
    pieces: list[tuple[int, str, str]]
    lasts: str = "until-compaction"
    prompt: bool = False
    call: str | None = None
    tool: tuple[str, str] | None = None
    place: str = ""
    failed: bool = False

    @property
    def text(self) -> str:
        return "\n\n".join(text for _, text, _ in sorted(self.pieces, key=lambda piece: piece[0]))

    def add(self, rank: int, text: str, lasts: str) -> None:
        """Add a text to the message."""
        self.pieces.append((rank, text, lasts))

    def drop(self, lasts: str) -> None:
        """Remove the texts of the message that last only this long."""
        self.pieces = [piece for piece in self.pieces if piece[2] != lasts]


_PROMPT_END = 1000
"""Added to the rank of a text after the user's own, subtracted from that of a text before it."""


@dataclass(slots=True)
class _Conversation:
    """The messages of one session, and the texts that wait for one of its requests."""

    messages: list[_Message] = field(default_factory=list)
    waiting: list[tuple[str, Placement, str]] = field(default_factory=list)
    prompt: str | None = None
    reply: str | None = None
    calls: int = 0
    is_known: bool = True
    """Whether the place of every text that the connector gave is known."""

    def forget(self, lasts: str) -> None:
        """Drop the messages and texts that last only this long."""
        self.messages = [message for message in self.messages if message.lasts != lasts]
        for message in self.messages:
            message.drop(lasts)

    def place_text(self, placement: Placement, text: str) -> None:
        """Put a text into the place that its placement names."""
        text = wrap_text(placement.wrap, text)
        newest = max((n for n, message in enumerate(self.messages) if message.prompt), default=None)
        if placement.place in ("prompt-begin", "prompt-end") and newest is not None:
            rank = placement.order + (_PROMPT_END if placement.place == "prompt-end" else -_PROMPT_END)
            self.messages[newest].add(rank, text, placement.lasts)
            return
        message = _Message(
            placement.role, [(placement.order, text, placement.lasts)], placement.lasts, place=placement.place
        )
        at = len(self.messages) if newest is None or placement.place == "end" else newest
        if placement.place in ("system", "after-system"):
            at = sum(1 for each in self.messages if each.place in ("system", "after-system"))
        elif placement.place == "after-prompt" and newest is not None:
            at += 1
            while at < len(self.messages) and self.messages[at].place == "after-prompt":
                if placement.shared:
                    self.messages[at].add(placement.order, text, placement.lasts)
                    return
                at += 1
        self.messages.insert(at, message)

    def place_waiting(self, kind: str) -> None:
        """Put the texts into their places that wait for a request of this kind."""
        for of, placement, text in self.waiting:
            if of == kind:
                self.place_text(placement, text)
        self.waiting = [waiting for waiting in self.waiting if waiting[0] != kind]

    def compact(self, rules: Compaction, summary: str) -> None:
        """Replace the conversation by a summary, and by the part that `rules` keep."""
        kept = [message for message in self.messages if message.lasts == "session"]
        if rules.keeps == "prompts":
            kept = [message for message in self.messages if message.prompt or message.lasts == "session"]
        elif rules.keeps == "last-turn":
            newest = max((n for n, message in enumerate(self.messages) if message.prompt), default=0)
            kept += [message for message in self.messages[newest:] if message.lasts != "session"]
        elif rules.keeps == "last-reply":
            kept += [message for message in self.messages[-1:] if message.role == "assistant"]
        for message in kept:
            if message.prompt:
                message.drop("until-compaction")
        question = [] if rules.question is None else [_Message("user", [(0, rules.question, "session")])]
        summary_messages = [*question, _Message(rules.role, [(0, wrap_text(rules.wrap, summary), "session")])]
        self.messages = [*summary_messages, *kept] if rules.place == "first" else [*kept, *summary_messages]


class PlayedModel:
    """The conversations of a played host's sessions, and its requests to the model in each step.

    Requests are yielded in the form that the recorder takes: `path`, `body`, and `answer` if the step determines it.
    """

    def __init__(self, answers: AnswerPlaces) -> None:
        self._answers = answers
        self._sessions: dict[str, _Conversation] = {}
        self._left: dict[str, list[_Conversation]] = {}
        self._step: Mapping[str, Any] = {}
        self._refused = False

    @property
    def _conversation(self) -> _Conversation:
        name = str(self._step.get("session"))
        if name not in self._sessions:
            self._sessions[name] = self._new_conversation()
        return self._sessions[name]

    def _new_conversation(self) -> _Conversation:
        opening = self._answers.opening
        return _Conversation([] if opening is None else [_Message("user", [(0, opening, "session")], "session")])

    def begin(self, step: Mapping[str, Any]) -> None:
        """Begin a step."""
        self._step = step
        if step["step"] in (StepName.START, StepName.SESSIONLESS_PROMPT):
            self._sessions.pop(str(step.get("session")), None)
            self._left.pop(str(step.get("session")), None)
        if isinstance(step.get("text"), str):
            self._conversation.prompt = step["text"]
            self._conversation.reply = str(step.get("reply") or _REPLY)

    def asks(self, event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the requests that the host makes now; `event` has the texts that the connector gave for them.

        Nothing is yielded if the real program would refuse what was installed: the kit's host uses it nevertheless.
        """
        self._refused = event.get("refused") is True
        if self._refused:
            return
        for beside in objects_in(event.get("beside")):
            kind = str(beside.get("for"))
            self._take(beside.get("given"), kind)
            yield from self._ask(kind)
        kind = "compaction" if self._step["step"] in _COMPACTING else "turn"
        self._take(event.get("given"), kind)
        if isinstance(event.get("said"), str) and self._conversation.prompt is not None:
            self._conversation.prompt = event["said"]
        yield from self._ask(kind)

    def end(self, result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """End a step with its result; yield the requests that follow from it."""
        step = self._step
        if "skipped" not in result:
            self._change_conversation()
        conversation = self._conversation
        self._take(result.get("given"))
        match step["step"]:
            case StepName.PROMPT | StepName.SESSIONLESS_PROMPT:
                if conversation.prompt is not None:  # the model was never asked
                    if step.get("stopped"):
                        conversation.messages.append(_message_of(conversation.prompt))
                    conversation.prompt = conversation.reply = None
            case StepName.TOOL if "skipped" not in result or conversation.reply is not None:
                # If the connector has no such tool, the model calls one of the host's own, and the turn continues.
                self._call(conversation, _USE_OF_OWN_TOOL if "skipped" in result else step, result)
                if not self._refused:
                    yield from self._ask("turn")
            case StepName.COMPACT | StepName.COMPACTION_COMPLETE if "skipped" not in result:
                if self._answers.compaction is not None:
                    conversation.compact(self._answers.compaction, str(step.get("summary") or ""))
        if not step.get("more") and conversation.reply is not None and step["step"] not in _COMPACTING:
            conversation.messages.append(_Message("assistant", [(0, conversation.reply, "until-compaction")]))
            conversation.reply = None
            conversation.forget("turn")

    def _change_conversation(self) -> None:
        """Switch the conversation: a new one at a clear, a copy at a fork, the former one at a reopen."""
        name, current = str(self._step.get("session")), self._conversation
        left = self._left.setdefault(name, [])
        match self._step["step"]:
            case StepName.CLEAR:
                left.append(current)
                self._sessions[name] = self._new_conversation()
            case StepName.FORK:
                left.append(current)
                self._sessions[name] = deepcopy(current)
            case StepName.REOPEN if left:
                self._sessions[name] = left.pop()
                left.append(current)

    def _take(self, given: object, kind: str | None = None) -> None:
        """Queue texts for the requests that they go into.

        Given for a request of a `kind`, they go into that one, unless their source names places of its own in such.
        """
        for row in objects_in(given):
            source, text = row.get("source"), row.get("text")
            if isinstance(source, str) and isinstance(text, str) and text:
                placements = self._placements(source, row.get("form"))
                if placements is None:
                    self._conversation.is_known = False
                    continue
                own = kind is None or any(placement.of == kind for placement in placements)
                waiting = [(placement.of if own else str(kind), placement, text) for placement in placements]
                self._conversation.waiting += waiting

    def _placements(self, source: str, form: object) -> Sequence[Placement] | None:
        """The places for a text from a source in a form, such as additionalContext; None if they are not known."""
        event, sources = source.partition(" ")[0], self._answers.sources
        names = (f"{source} {form}", f"{event} {form}", source, event)
        return next((sources[name] for name in names if name in sources), None)

    def _call(self, conversation: _Conversation, step: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Add the model's call of a tool and its result."""
        conversation.calls += 1
        call = f"call-{conversation.calls}"
        tool = (str(step.get("tool")), json.dumps(step.get("arguments") or {}, ensure_ascii=False))
        text = result.get("text")
        if "skipped" in result:
            text = "# README"
        output = text if isinstance(text, str) else json.dumps(result.get("content"), ensure_ascii=False)
        use = _Message("assistant", [], call=call, tool=tool)
        reply = _Message("result", [(0, output, "until-compaction")], call=call, failed=result.get("is_error") is True)
        conversation.messages += [use, reply]

    def _ask(self, kind: str) -> Iterator[Mapping[str, Any]]:
        conversation, step = self._conversation, self._step
        before = conversation.messages
        if kind == "turn" and conversation.prompt is not None:
            conversation.messages.append(_message_of(conversation.prompt))
            conversation.prompt = None
        elif kind == "title":
            conversation.messages = [_message_of(f"{_QUESTIONS[kind]}\n{step.get('text')}")]
        elif kind == "compaction":
            conversation.messages = [*before, _message_of(_QUESTIONS[kind])]
        conversation.place_waiting(kind)
        tools = [_OWN_TOOL] if kind == "turn" else []
        reply = step.get("reply" if kind == "turn" else "summary") or _REPLY
        yield {
            "path": self._answers.api,
            "body": _BODIES[self._answers.api](conversation.messages, tools) if conversation.is_known else None,
            "answer": {} if step.get("more") else _ANSWERS[self._answers.api](str(reply)),
        }
        if kind != "turn":
            conversation.messages = before
        conversation.forget("request")


def _message_of(text: str) -> _Message:
    return _Message("user", [(0, text, "session")], prompt=True)


def _system_and_rest(messages: Sequence[_Message]) -> tuple[str, Sequence[_Message]]:
    own = [message for message in messages if message.place == "system"]
    return "\n\n".join([_SYSTEM, *(message.text for message in own)]), [m for m in messages if m.place != "system"]


def _anthropic(messages: Sequence[_Message], tools: Sequence[str]) -> Mapping[str, Any]:
    system, rest = _system_and_rest(messages)
    turns: list[Mapping[str, Any]] = []
    for message in rest:
        block: dict[str, Any] = {"type": "text", "text": message.text}
        role = message.role
        if message.tool is not None:
            name, arguments = message.tool
            block = {"type": "tool_use", "id": message.call, "name": name, "input": json.loads(arguments)}
        elif message.role == "result":
            role = "user"
            block = {"type": "tool_result", "tool_use_id": message.call, "content": message.text}
            block |= {"is_error": True} if message.failed else {}
        turns.append({"role": role, "content": [block]})
    offered = [{"name": name, "input_schema": {"type": "object"}} for name in tools]
    return {"model": "played", "max_tokens": 1024, "system": system, "messages": turns, "tools": offered}


def _responses(messages: Sequence[_Message], tools: Sequence[str]) -> Mapping[str, Any]:
    system, rest = _system_and_rest(messages)
    items: list[Mapping[str, Any]] = []
    for message in rest:
        if message.tool is not None:
            name, arguments = message.tool
            items.append({"type": "function_call", "call_id": message.call, "name": name, "arguments": arguments})
        elif message.role == "result":
            items.append({"type": "function_call_output", "call_id": message.call, "output": message.text})
        else:
            kind = "output_text" if message.role == "assistant" else "input_text"
            role = "developer" if message.role == "system" else message.role
            items.append({"type": "message", "role": role, "content": [{"type": kind, "text": message.text}]})
    offered = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in tools]
    return {"model": "played", "instructions": system, "input": items, "tools": offered}


def _chat(messages: Sequence[_Message], tools: Sequence[str]) -> Mapping[str, Any]:
    system, rest = _system_and_rest(messages)
    turns: list[Mapping[str, Any]] = [{"role": "system", "content": system}]
    for message in rest:
        if message.tool is not None:
            name, arguments = message.tool
            function = {"name": name, "arguments": arguments}
            calls = [{"id": message.call, "type": "function", "function": function}]
            turns.append({"role": "assistant", "content": None, "tool_calls": calls})
        elif message.role == "result":
            turns.append({"role": "tool", "tool_call_id": message.call, "content": message.text})
        else:
            turns.append({"role": message.role, "content": message.text})
    offered = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in tools]
    return {"model": "played", "messages": turns, **({"tools": offered} if offered else {})}


_BODIES = {"/v1/messages": _anthropic, "/v1/responses": _responses, "/v1/chat/completions": _chat}
_ANSWERS: Mapping[str, Callable[[str], Mapping[str, Any]]] = {
    "/v1/messages": lambda text: {
        "type": "message", "role": "assistant", "content": [{"type": "text", "text": text}]
    },
    "/v1/responses": lambda text: {
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
    },
    "/v1/chat/completions": lambda text: {"choices": [{"message": {"role": "assistant", "content": text}}]},
}  # fmt: skip
