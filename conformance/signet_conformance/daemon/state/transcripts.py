"""Transcripts: converts a harness's own format to plain lines, stores them, and searches them."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.js import Clock
from signet_conformance.daemon.state.store import Store
from signet_conformance.daemon.state.texts import index_query, index_words

_ROLES: Final = {
    **dict.fromkeys(("user", "human", "client"), "User"),
    **dict.fromkeys(("assistant", "agent", "model", "ai"), "Assistant"),
    **dict.fromkeys(("system", "developer"), "System"),
    **dict.fromkeys(("tool", "toolresult", "tool_result", "bashexecution", "pythonexecution", "custom"), "Tool"),
}
_EXCERPT: Final = 360


def plain_lines(harness: object, raw: object) -> str:
    """`raw` as ``User: …`` and ``Assistant: …`` lines when it is JSON lines; any other text unchanged.

    Raises `ScriptError` when either is not a string.
    """
    codex = (js.trimmed(harness) or "").lower() == "codex"
    if harness is None or not isinstance(raw, str):
        raise js.ScriptError("not a string")
    return _read_lines(raw, _turn, codex=codex)


def flat_lines(harness: str, raw: str) -> str:
    """`raw` as 0.58 reads it: lines with ``role`` and ``content`` on their own level; nested messages do not count."""
    return _read_lines(raw, _flat_turn, codex=harness.strip(js.BLANKS).lower() == "codex")


def _read_lines(raw: str, read: Callable[[dict[str, Any]], str], *, codex: bool) -> str:
    """The turns that `read` finds in lines of JSON; for codex only special ones. `raw` if few lines are JSON."""
    records = [_json_object(line) for part in re.split(r"\r?\n", raw) if (line := part.strip(js.BLANKS))]
    if not codex and sum(record is not None for record in records) < -(-len(records) * 6 // 10):
        return raw
    turns = (_special_turn(record) or ("" if codex else read(record)) for record in records if record)
    return "\n".join(filter(None, turns))


def _flat_turn(record: dict[str, Any]) -> str:
    role = _ROLES.get(_first_text(record, "role", "speaker").lower())
    text = _first_text(record, "content", "text", "message")
    return f"{role}: {text}" if role in ("User", "Assistant") and text else ""


def _json_object(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _one_line(value: object) -> str:
    return re.sub(r"[\r\n]+", " ", value.strip(js.BLANKS)) if isinstance(value, str) else ""


def _first_text(record: dict[str, Any], *names: str) -> str:
    return next((text for name in names if (text := _one_line(record.get(name)))), "")


def _message_text(record: dict[str, Any]) -> str:
    direct = _first_text(record, "content", "text", "message", "output")
    if direct:
        return direct
    parts: list[Any] = next((record[name] for name in ("content", "parts") if isinstance(record.get(name), list)), [])
    texts = [
        _first_text(part, "text", "input_text", "content", "message") if isinstance(part, dict) else _one_line(part)
        for part in parts
    ]
    return " ".join(filter(None, texts))


def _special_turn(record: dict[str, Any]) -> str:
    item, payload = record.get("item"), record.get("payload")
    if record.get("type") == "item.completed" and isinstance(item, dict) and item.get("type") == "agent_message":
        text = _first_text(item, "text", "message", "content")
        return f"Assistant: {text}" if text else ""
    if record.get("type") == "event_msg" and isinstance(payload, dict) and payload.get("type") == "user_message":
        text = _first_text(payload, "message", "text", "content")
        return f"User: {text}" if text else ""
    return ""


def _turn(record: dict[str, Any]) -> str:
    for candidate in (record.get("message"), record):
        if isinstance(candidate, dict):
            role = _ROLES.get(_first_text(candidate, "role", "speaker", "author").lower())
            text = _message_text(candidate)
            if role and text:
                return f"{role}: {text}"
    return ""


def read_file(path: object) -> str | None:
    """The text of the transcript file `path`; None when the path does not exist, empty when the file cannot be read."""
    try:
        file = Path(path) if isinstance(path, str) and path else None
        if file is None or not file.exists():
            return None
        return file.read_text("utf-8", "replace")
    except (OSError, ValueError):
        return ""


class Transcripts:
    """The stored transcripts, one for each agent and session key."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def get(self, key: str, agent: str) -> str:
        """The stored transcript, empty when nothing was stored."""
        row = self._store.row(
            "SELECT content FROM session_transcripts WHERE session_key = ? AND agent_id = ?", key, agent
        )
        return row["content"] if row else ""

    def store(self, key: str, agent: str, text: str, *, harness: object, project: object) -> None:
        """Store `text` in place of what was stored; blank texts and keys are not kept."""
        if not key.strip(js.BLANKS) or not text.strip(js.BLANKS):
            return
        now = js.iso(self._clock())
        self._store.run(
            """INSERT INTO session_transcripts VALUES (?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (agent_id, session_key) DO UPDATE
               SET content = excluded.content, harness = excluded.harness, project = excluded.project,
                   updated_at = excluded.updated_at""",
            key, agent, text, _scalar(harness), _scalar(project), now, now,
        )  # fmt: skip

    def drop(self, key: str, agent: str) -> None:
        """Delete the transcript, and the record of how far it was extracted."""
        self._store.run("DELETE FROM session_transcripts WHERE session_key = ? AND agent_id = ?", key, agent)
        self._store.run("DELETE FROM extract_cursors WHERE session_key = ? AND agent_id = ?", key, agent)

    def search(
        self, query: str, agent: str, *, key: str | None, current: str | None, project: str | None, limit: int
    ) -> list[dict[str, Any]]:
        """The transcripts that `query` finds, best first; `key` narrows to one session, `current` leaves one out."""
        where, values = "t.agent_id = ?", [agent]
        for clause, value in (
            ("t.session_key = ?", key),
            ("t.session_key != ?", None if key else current),
            ("t.project = ?", project),
        ):
            if value:
                where += f" AND {clause}"
                values.append(value)
        # SQLite ends a text at a NUL, in the middle of its quotes.
        expression = index_query(query.replace("\0", " "))
        rows = []
        if expression:
            rows = self._store.rows(
                f"""SELECT t.session_key, t.project, t.updated_at, t.content, bm25(session_transcripts_fts) AS rank
                    FROM session_transcripts_fts JOIN session_transcripts t ON t.rowid = session_transcripts_fts.rowid
                    WHERE session_transcripts_fts MATCH ? AND {where} ORDER BY rank, t.updated_at DESC LIMIT ?""",
                expression, *values, limit,
            )  # fmt: skip
        words = [] if rows else [word for word in re.split(r"[^a-z0-9_]+", query.lower()) if len(word) >= 3][:8]
        if words:
            hit = "(INSTR(LOWER(t.content), ?) > 0)"
            rows = self._store.rows(
                f"""SELECT t.session_key, t.project, t.updated_at, t.content, {" + ".join([hit] * len(words))} AS rank
                    FROM session_transcripts t
                    WHERE {where} AND rank > 0 ORDER BY rank DESC, t.updated_at DESC LIMIT ?""",
                *words, *values, limit,
            )  # fmt: skip
        wanted = list(index_words(query))[:8]
        return [
            {
                "sessionKey": row["session_key"],
                "project": row["project"],
                "updatedAt": row["updated_at"],
                "excerpt": _excerpt(row["content"], wanted),
                "rank": row["rank"],
            }
            for row in rows
        ]


def _scalar(value: object) -> object:
    return value if isinstance(value, str | int | float) or value is None else str(value)


def _excerpt(content: str, words: list[str]) -> str:
    """The passage of `content` around the first of `words` found in it."""
    lowered = content.lower()
    starts = [at for word in words if (at := lowered.find(word)) >= 0]
    begin = max(0, min(starts, default=0) - _EXCERPT // 3)
    passage = " ".join(content[begin : begin + _EXCERPT].split())
    return f"{'... ' if begin else ''}{passage}{' ...' if begin + _EXCERPT < len(content) else ''}"


class Captures:
    """The transcript captures of one daemon. They complete at once, as nothing is captured here."""

    def __init__(self) -> None:
        self._agents: dict[str, str] = {}

    def add(self, agent: str) -> str:
        """Add a completed capture for `agent`; return the job's id."""
        job = str(uuid.uuid4())
        self._agents[job] = agent
        return job

    def status(self, job: str, agent: str) -> dict[str, Any] | None:
        """The job of `agent`, else None."""
        return {"id": job, "status": "completed", "error": None} if self._agents.get(job) == agent else None
