"""The conversation of one session: the messages that the model still sees, and the transcript for the daemon."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final, Literal

from signet_reference_harness.messages import Message, Reminder, Role

TRANSCRIPT_LIMIT: Final = 1_500_000
"""Characters. The daemon refuses bodies of over 10 MiB, and a character can take six bytes."""
DIGEST_LIMIT: Final = 2_000
BEGAN_AGAIN: Final = "The session began again: {}."
UNDONE: Final = "The user took back the turn before."
UNTAKEN: Final = {"role": "system", "content": "This session holds no turn."}
LINE_BREAKS: Final = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Characters that JSON leaves as they are although many a reader splits lines at them."""


def said_in(messages: Sequence[Message], prompt: str, reply: str) -> list[tuple[Role | Literal["system"], str]]:
    """The transcript of a turn that added these messages: its prompt, what the user said meanwhile, and the reply."""
    meanwhile = [each.content for each in messages if each.role == "user" and each.content.strip()][1:]
    return [("user", prompt), *(("user", text) for text in meanwhile), ("assistant", reply)]


class Conversation:
    """Completed turns only: an interrupted one leaves no trace.

    The transcript is never shortened by a compaction or a clear. The daemon keeps one transcript a session
    key and prefers the longer, so one that shrank would be ignored; and from an end that says `clear` it keeps
    nothing, so what came before would be lost. It says where the session began again: an end after that differs
    from the one before, which the daemon may have refused, though no turn lies between.
    """

    def __init__(self) -> None:
        self._turns: list[tuple[Role | Literal["system"], str]] = []
        self._messages: list[Message] = []
        self._begun: list[tuple[int, str]] = []
        """Of each turn that can be undone: its place, and its prompt."""
        self._cleared_at = 0
        """How many lines of the transcript the model no longer sees."""
        self.summary = ""
        """The summary of the messages before the last compaction."""
        self.last_reply: str | None = None
        """The model's last words in the present context."""
        self.pending: tuple[Reminder, ...] = ()
        """Reminders for the next message of the user."""

    @property
    def messages(self) -> Sequence[Message]:
        """The messages that the model still sees."""
        return tuple(self._messages)

    @property
    def message_count(self) -> int:
        """How many messages a compaction takes the place of."""
        return len(self._messages)

    def add_turn(self, prompt: str, reply: str, messages: Sequence[Message]) -> None:
        """Keep a completed turn, which added these messages to the model's context."""
        self._begun.append((len(self._messages), prompt))
        self._messages += messages
        self.pending = ()
        self._turns += said_in(messages, prompt, reply)
        self._keep_last(reply)

    @property
    def turns(self) -> Sequence[tuple[str, str]]:
        """Role and content of each line of the transcript, from the beginning."""
        return tuple(self._turns)

    def settle(self) -> None:
        """Let no turn so far be undone."""
        self._begun.clear()

    def take_back(self, messages: int, turns: int) -> None:
        """Forget what came after this number of messages and of lines, as if it had not been said."""
        del self._messages[messages:], self._turns[turns:]
        self._begun = self._begun[:-1]
        self._find_last_reply()

    def _find_last_reply(self) -> None:
        self._keep_last(next((each.content for each in reversed(self._messages) if each.role == "assistant"), ""))

    def _keep_last(self, reply: str) -> None:
        self.last_reply = reply[:TRANSCRIPT_LIMIT] if reply.strip() else None

    def begin_again(self, source: str) -> None:
        """Note in the transcript that the session goes on after its end, as `source` says."""
        self._turns.append(("system", BEGAN_AGAIN.format(source)))

    def undo(self) -> str | None:
        """Take the last turn from the model, and return its prompt; None where there is no such turn.

        The transcript keeps it, and says so.
        """
        if not self._begun:
            return None
        place, prompt = self._begun.pop()
        del self._messages[place:]
        self._turns.append(("system", UNDONE))
        self._find_last_reply()
        self.pending = ()
        return prompt

    def clear(self) -> None:
        """Take everything from the model."""
        self.compact("")
        self._cleared_at = len(self._turns)
        self.last_reply = None
        self.pending = ()

    def compact(self, summary: str) -> None:
        """Put a summary in the place of the messages."""
        self._begun.clear()
        self._messages = []
        self.summary = summary

    def transcript(self, outgoing: Callable[[str], str]) -> str:
        """The turns in order, one JSON object of role and content a line; never blank.

        `outgoing` removes secrets and injections from each text; a turn without a rest is left out.
        Without a turn there is one line of another role that says so.
        """
        lines: list[str] = []
        size = 0
        for role, content in reversed(self._turns):
            told = outgoing(content[:TRANSCRIPT_LIMIT])
            if not told.strip():
                continue
            line = json.dumps({"role": role, "content": told}, ensure_ascii=False).translate(LINE_BREAKS)
            size += len(line) + 1
            if size > TRANSCRIPT_LIMIT and lines:
                break
            lines.append(line)
        return "\n".join(reversed(lines)) if lines else json.dumps(UNTAKEN)

    def digest(self) -> str:
        """A summary made without a model, from what the user asked last since a clear: never blank."""
        seen = self._turns[self._cleared_at :]
        asked = "\n".join(f"- {content.strip()}" for role, content in seen if role == "user")
        if not asked:
            return "No turn has been taken yet."
        return f"The user asked, most recently last:\n{asked[-DIGEST_LIMIT:]}"
