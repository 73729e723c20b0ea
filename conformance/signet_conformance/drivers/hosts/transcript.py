"""The transcript that a harness keeps of a session, in the form that its own files have."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class HostTranscript:
    """A JSON lines file below the home folder; `kind` is `claude` or `codex`."""

    def __init__(self, kind: str, session: str, cwd: Path) -> None:
        self._line = _LINES[kind]
        self._session = session
        self._cwd = str(cwd)
        self._now = datetime.now(UTC)
        self.path = Path.home() / _PATHS[kind](session, self._cwd, self._now)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "codex":
            meta = {"id": session, "timestamp": self._stamp(), "cwd": self._cwd, "originator": "codex_exec"}
            self._write({"timestamp": self._stamp(), "type": "session_meta", "payload": meta})

    def say(self, role: str, text: str) -> None:
        """Add what the user or the assistant said."""
        self._write({**self._line(role, text), "timestamp": self._stamp(), **self._more(role)})

    def _more(self, role: str) -> Mapping[str, Any]:
        if self._line is not _claude_line:
            return {}
        return {"type": role, "sessionId": self._session, "cwd": self._cwd, "uuid": str(uuid.uuid4())}

    def _stamp(self) -> str:
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _write(self, line: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")


def _claude_line(role: str, text: str) -> Mapping[str, Any]:
    content: Any = text if role == "user" else [{"type": "text", "text": text}]
    return {"message": {"role": role, "content": content}}


def _codex_line(role: str, text: str) -> Mapping[str, Any]:
    part = {"type": "input_text" if role == "user" else "output_text", "text": text}
    return {"type": "response_item", "payload": {"type": "message", "role": role, "content": [part]}}


def _claude_path(session: str, cwd: str, _now: datetime) -> str:
    return f".claude/projects/{cwd.replace('/', '-').replace('.', '-')}/{session}.jsonl"


def _codex_path(session: str, _cwd: str, now: datetime) -> str:
    return f".codex/sessions/{now:%Y/%m/%d}/rollout-{now:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"


_LINES: Mapping[str, Callable[[str, str], Mapping[str, Any]]] = {"claude": _claude_line, "codex": _codex_line}
_PATHS: Mapping[str, Callable[[str, str, datetime], str]] = {"claude": _claude_path, "codex": _codex_path}
