"""The transcript that Claude Code or Codex keeps of a session, which a hook may read."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class HostTranscript:
    """A JSON lines file below the home folder; `kind` is `claude` or `codex`."""

    def __init__(self, kind: str, session: str, cwd: Path) -> None:
        self._lines = _LINES[kind]
        self._session = session
        self._cwd = str(cwd)
        self._now = datetime.now(UTC)
        self.path = Path.home() / _PATHS[kind](session, self._cwd, self._now)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "codex":
            meta = {"id": session, "timestamp": self._stamp(), "cwd": self._cwd, "originator": "codex_exec"}
            self._write({"timestamp": self._stamp(), "type": "session_meta", "payload": meta})

    def add_message(self, role: str, text: str, attached: Sequence[str] = ()) -> None:
        """Add a message of the user or the assistant, or the summary of a compaction."""
        for line in self._lines(role, text, attached):
            self._write({**line, "timestamp": self._stamp(), **self._session_members()})

    def add_call(self, name: str, arguments: Mapping[str, Any], call_id: str, answer: str) -> None:
        """Add the model's call of a tool and the tool's result."""
        if self._lines is _codex_lines:
            call = {"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": call_id}
            output = {"type": "function_call_output", "call_id": call_id, "output": answer}
            lines: Sequence[Mapping[str, Any]] = [{"type": "response_item", "payload": each} for each in (call, output)]
        else:
            use = {"type": "tool_use", "id": call_id, "name": name, "input": dict(arguments)}
            result = {"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "text", "text": answer}]}
            lines = [_claude_line("assistant", [use]), _claude_line("user", [result])]
        for line in lines:
            self._write({**line, "timestamp": self._stamp(), **self._session_members()})

    def _session_members(self) -> Mapping[str, Any]:
        if self._lines is not _claude_lines:
            return {}
        return {"sessionId": self._session, "cwd": self._cwd, "uuid": str(uuid.uuid4())}

    def _stamp(self) -> str:
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _write(self, line: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")


def _claude_line(role: str, content: Any, **more: Any) -> Mapping[str, Any]:
    return {"type": role, "message": {"role": role, "content": content}, **more}


_THOUGHTS = (
    {"type": "thinking", "thinking": "The user: wants a short answer.", "signature": "EqQBCkgIBxABGAI="},
    {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix="},
)
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"


def _claude_lines(role: str, text: str, attached: Sequence[str] = ()) -> Sequence[Mapping[str, Any]]:
    if role == "summary":
        boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
        (line,) = _claude_lines("user", text)
        return boundary, {**line, "isCompactSummary": True, "isVisibleInTranscriptOnly": True}
    parts: list[Mapping[str, Any]] = [{"type": "text", "text": text}] if text else []
    if role == "user" and attached:
        source = {"type": "base64", "media_type": "image/png", "data": _PIXEL}
        note = [{"type": "text", "text": "[Image: source: /tmp/claude-0/images/1.png]"}]
        image = {"type": "image", "source": source}
        return _claude_line(role, [*parts, image]), _claude_line(role, note, isMeta=True)
    if role == "user":
        return (_claude_line(role, text),)
    # Each block of an answer has a line of its own.
    return (*(_claude_line(role, [thought]) for thought in _THOUGHTS), _claude_line(role, parts))


def _codex_lines(role: str, text: str, attached: Sequence[str] = ()) -> Sequence[Mapping[str, Any]]:
    if role == "summary":
        return ({"type": "compacted", "payload": {"message": text}},)
    content: list[Mapping[str, Any]] = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
    for number in range(len(attached), 0, -1):
        content = [
            {"type": "input_text", "text": f'<image name=[Image #{number}] path="pixel.png">'},
            {"type": "input_image", "image_url": f"data:image/png;base64,{_PIXEL}", "detail": "high"},
            {"type": "input_text", "text": "</image>"},
            *content,
        ]
    return ({"type": "response_item", "payload": {"type": "message", "role": role, "content": content}},)


def _claude_path(session: str, cwd: str, _now: datetime) -> str:
    return f".claude/projects/{cwd.replace('/', '-').replace('.', '-')}/{session}.jsonl"


def _codex_path(session: str, _cwd: str, now: datetime) -> str:
    return f".codex/sessions/{now:%Y/%m/%d}/rollout-{now:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"


_LINES: Mapping[str, Callable[[str, str, Sequence[str]], Sequence[Mapping[str, Any]]]] = {
    "claude": _claude_lines,
    "codex": _codex_lines,
}
_PATHS: Mapping[str, Callable[[str, str, datetime], str]] = {"claude": _claude_path, "codex": _codex_path}
