"""The conversation of one session: the messages that the model still sees, and the transcript for the daemon."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final, Literal

from signet_reference_harness.messages import Message, Reminder, Role

TRANSCRIPT_LIMIT: Final = 1_500_000
"""Characters. The daemon refuses bodies of over 10 MiB, and a character can take six bytes."""
DIGEST_LIMIT: Final = 2_000
RESTARTED: Final = "The session began again: {}."
UNDONE: Final = "The user took back the turn before."
NO_TURN: Final = {"role": "system", "content": "This session holds no turn."}
LINE_BREAKS: Final = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Escapes for characters that JSON leaves unescaped, although some readers split lines at them."""


def transcript_of(messages: Sequence[Message], prompt: str, reply: str) -> list[tuple[Role | Literal["system"], str]]:
    """The transcript of a turn that added these messages: prompt, the user's texts during the turn, and reply."""
    meanwhile = [each.content for each in messages if each.role == "user" and each.content.strip()][1:]
    return [("user", prompt), *(("user", text) for text in meanwhile), ("assistant", reply)]


class Conversation:
    """The completed turns of a session; an interrupted turn leaves no trace.

    A compaction or a clear does not shorten the transcript. The daemon keeps the longest transcript of a session key,
    so it would ignore a shorter one. It keeps none from an end with the reason `clear`, so the turns before would be
    lost. A line says where the session began again: it makes the next end differ from the last one, which the daemon
    may have refused, even if there was no turn between them.
    """

    def __init__(self) -> None:
        self._turns: list[tuple[Role | Literal["system"], str]] = []
        self._messages: list[Message] = []
        self._undoable: list[tuple[int, str]] = []
        """For each turn that can be undone, the index of its first message, and its prompt."""
        self._cleared_at = 0
        """How many lines of the transcript the model no longer sees."""
        self.summary = ""
        """The summary of the messages before the last compaction."""
        self.last_reply: str | None = None
        """The model's last reply in the present context."""
        self.pending: tuple[Reminder, ...] = ()
        """Reminders for the next message of the user."""

    @property
    def messages(self) -> Sequence[Message]:
        """The messages that the model still sees."""
        return tuple(self._messages)

    @property
    def message_count(self) -> int:
        """How many messages a compaction would replace."""
        return len(self._messages)

    def add_turn(self, prompt: str, reply: str, messages: Sequence[Message]) -> None:
        """Keep a completed turn, which added these messages to the model's context."""
        self._undoable.append((len(self._messages), prompt))
        self._messages += messages
        self.pending = ()
        self._turns += transcript_of(messages, prompt, reply)
        self._keep_last(reply)

    @property
    def turns(self) -> Sequence[tuple[str, str]]:
        """Role and content of each line of the transcript, from the beginning."""
        return tuple(self._turns)

    def settle(self) -> None:
        """Make the turns so far final: none of them can be undone."""
        self._undoable.clear()

    def take_back(self, messages: int, turns: int) -> None:
        """Cut the conversation to this number of messages and of transcript lines."""
        del self._messages[messages:], self._turns[turns:]
        self._undoable = self._undoable[:-1]
        self._find_last_reply()

    def _find_last_reply(self) -> None:
        self._keep_last(next((each.content for each in reversed(self._messages) if each.role == "assistant"), ""))

    def _keep_last(self, reply: str) -> None:
        self.last_reply = reply[:TRANSCRIPT_LIMIT] if reply.strip() else None

    def begin_again(self, source: str) -> None:
        """Note in the transcript that the session goes on after its end, as `source` says."""
        self._turns.append(("system", RESTARTED.format(source)))

    def undo(self) -> str | None:
        """Remove the last turn from the model's context and return its prompt, or return None if no turn can be undone.

        The transcript keeps the turn, and says that it was taken back.
        """
        if not self._undoable:
            return None
        place, prompt = self._undoable.pop()
        del self._messages[place:]
        self._turns.append(("system", UNDONE))
        self._find_last_reply()
        self.pending = ()
        return prompt

    def clear(self) -> None:
        """Empty the model's context."""
        self.compact("")
        self._cleared_at = len(self._turns)
        self.last_reply = None
        self.pending = ()

    def compact(self, summary: str) -> None:
        """Replace the messages by a summary."""
        self._undoable.clear()
        self._messages = []
        self.summary = summary

    def transcript(self, outgoing: Callable[[str], str]) -> str:
        """The turns in order, one JSON object with role and content per line; never blank.

        `outgoing` removes secrets and injections from each text; a text that is then blank is left out. If there is no
        turn, one line of the role `system` says so.
        """
        lines: list[str] = []
        size = 0
        for role, content in reversed(self._turns):
            text = outgoing(content[:TRANSCRIPT_LIMIT])
            if not text.strip():
                continue
            line = json.dumps({"role": role, "content": text}, ensure_ascii=False).translate(LINE_BREAKS)
            size += len(line) + 1
            if size > TRANSCRIPT_LIMIT and lines:
                break
            lines.append(line)
        return "\n".join(reversed(lines)) if lines else json.dumps(NO_TURN)

    def digest(self) -> str:
        """A summary made without a model: the user's latest prompts since the last clear; never blank."""
        lines = self._turns[self._cleared_at :]
        prompts = "\n".join(f"- {content.strip()}" for role, content in lines if role == "user")
        if not prompts:
            return "No turn has been taken yet."
        return f"The user asked, most recently last:\n{prompts[-DIGEST_LIMIT:]}"
