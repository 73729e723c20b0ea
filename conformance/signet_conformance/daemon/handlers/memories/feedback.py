"""Ratings of memories, and the notes that Codex keeps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from signet_conformance.daemon.state.agents import plain_agent
from signet_conformance.daemon.values import (
    UnreadableJsonError,
    fields_of,
    is_number,
    text_or_none,
    truthy,
)
from signet_conformance.daemon.wire import Answer, Call, refusal

if TYPE_CHECKING:
    from signet_conformance.daemon.state.daemon import Daemon


def feedback(daemon: Daemon, call: Call) -> Answer:
    """POST memory/feedback: ratings of memories; those shown to the session at its start are accepted."""
    body = call.json_record()
    if body is None:
        return refusal(400, "Invalid JSON body")
    key, given = text_or_none(body.get("sessionKey")), body.get("feedback")
    if not key or not truthy(given):
        return refusal(400, "sessionKey and feedback required")
    ratings = (
        {name: value for name, value in given.items() if name and is_number(value)} if isinstance(given, dict) else {}
    )
    if not ratings:
        return refusal(400, "Invalid feedback format — expected map of ID to number (-1 to 1)")
    shown = daemon.store.rows(
        "SELECT memory_id FROM shown_memories WHERE session_key = ? AND agent_id = ?", key, plain_agent(body)
    )
    accepted = len({row["memory_id"] for row in shown} & set(ratings))
    return Answer(
        {
            "ok": True, "recorded": len(ratings), "accepted": accepted, "rejected": len(ratings) - accepted,
            "propagated": 0, "cooccurrenceUpdated": 0, "dependenciesUpdated": 0,
            "acceptanceRule": "accepted means the memory id was recorded for this session and agent",
        }
    )  # fmt: skip


def codex_note(daemon: Daemon, call: Call) -> Answer:
    """POST memory/codex-native-note: a note, written into the workspace and never into a user's home."""
    try:
        body = fields_of(call.json())
    except UnreadableJsonError:
        body = {}
    content = text_or_none(body.get("content"))
    if not content:
        return refusal(400, "content is required")
    if len(content) > 8000:
        return refusal(400, "content must be at most 8000 characters")
    if daemon.settings.frozen:
        return refusal(503, "Mutations are frozen (kill switch active)")
    folder = daemon.workspace / "codex-notes"
    folder.mkdir(exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", (text_or_none(body.get("title")) or content[:80]).lower()).strip("-")[:48]
    path = folder / f"{re.sub('[:.]', '-', daemon.now())}-{slug or 'note'}.md"
    path.write_text(f"{content}\n", "utf-8")
    return Answer({"ok": True, "path": str(path)})
