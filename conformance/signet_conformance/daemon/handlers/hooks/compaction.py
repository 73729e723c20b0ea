"""The hooks around a compaction, and the checkpoint of a running session."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers import hooks
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.agents import plain_agent, resolve_agent
from signet_conformance.daemon.state.transcripts import plain_lines, read_file
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, demand

_LEAST_NEW: Final = 500
_GUIDELINES: Final = (
    "Keep what later sessions need: decisions and their reasons, preferences, open work, names of files and services."
    " Leave out what the code itself shows."
)
_ASK: Final = "Before the context is compacted, write a summary of what must not be lost.\n\n"


def pre_compaction(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/pre-compaction: return the instructions for summing up the session."""
    body = call.json()
    fields: Mapping[str, Any] = body if isinstance(body, dict) else {}
    demand(js.truthy(fields.get("harness")), "harness is required")
    key, path = fields.get("sessionKey"), hooks.runtime_path(call, fields)
    agent = resolve_agent(fields.get("agentId") if daemon.behaviour.claims_by_agent else None, key)
    hooks.claim(daemon, key, path, agent, {"guidelines": "", "instructions": "", "summaryPrompt": ""})
    if hooks.is_bypassed(daemon, fields):
        return DaemonAnswer({"instructions": "", "bypassed": True})
    return DaemonAnswer(summary_request(daemon, resolve_agent(fields.get("agentId"), key)))


def summary_request(daemon: Daemon, agent: str) -> dict[str, Any]:
    """The instructions for a host before it compacts, with the newest memories of `agent`."""
    visible, values = daemon.agents.visible(agent)
    rows = daemon.store.rows(
        f"SELECT m.content FROM memories m WHERE m.is_deleted = 0{visible} ORDER BY m.created_at DESC LIMIT 5", *values
    )
    recent = "".join(f"- {row['content']}\n" for row in rows)
    prompt = f"{_ASK}{_GUIDELINES}\n\n" + (f"\nRecent memories for reference:\n{recent}" if recent else "")
    return {"summaryPrompt": prompt, "guidelines": _GUIDELINES}


def compaction_complete(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/compaction-complete: store the summary, and begin the session's next context epoch."""
    fields = hooks.read_fields(call, None, "harness", "summary")
    key = fields.get("sessionKey")
    hooks.claim(daemon, key, hooks.runtime_path(call, fields), plain_agent(fields), {"success": True})
    if hooks.is_bypassed(daemon, fields):
        return DaemonAnswer({"success": True, "bypassed": True})
    scoped = daemon.behaviour.context_epochs
    agent = daemon.auth.scoped_agent(call.claims, resolve_agent(fields.get("agentId"), key) if scoped else "default")
    row = daemon.store.row("SELECT project FROM session_transcripts WHERE session_key = ? AND agent_id = ?", key, agent)
    project = (row["project"] if row else None) or js.text_or_none(fields.get("project"))
    project = daemon.auth.scoped_project(call.claims, project if scoped else None)
    noise = hooks.is_noise(project=project, key=key, harness=fields["harness"])
    memory = None if noise else _store_summary(daemon, fields, agent, project)
    answer: dict[str, Any] = {"success": True, "memoryId": memory}
    if scoped:
        epoch = daemon.epochs.advance(key, agent)
        if epoch is not None:
            answer["contextEpoch"] = epoch
    if not daemon.behaviour.dedupe_key_is_session_key:
        daemon.started.forget(hooks.dedupe_key_of(daemon, agent, {**fields, "sessionId": None}, project))
    if js.truthy(key):
        daemon.transcripts.drop(str(key), agent)
    return DaemonAnswer(answer)


def _store_summary(daemon: Daemon, fields: Mapping[str, Any], agent: str, project: str | None) -> str:
    """Store the summary as a memory and as a session summary; return the memory's id."""
    key, harness, summary = fields.get("sessionKey"), fields["harness"], fields["summary"]
    now = daemon.now()
    if not isinstance(summary, str) or not isinstance(harness, str):
        raise js.ScriptError("summary or harness is not a text")
    with daemon.store.transaction():
        tags = f"session,summary,{harness}"
        new = save_summary(daemon, fields, tags=tags, source_id=key, project=project, agent_id=agent)
        node = f"{key}:compaction:{int(daemon.clock() * 1000)}" if js.truthy(key) else str(uuid.uuid4())
        daemon.store.run(
            """INSERT OR REPLACE INTO session_summaries
               VALUES (?, ?, 0, 'session', ?, ?, ?, ?, ?, ?, ?, 'compaction', ?, ?, ?)""",
            node, project, summary, -(-len(summary) // 4), now, now, key, harness, agent, key,
            '{"source":"compaction-complete"}', now,
        )  # fmt: skip
    return new


def save_summary(daemon: Daemon, fields: Mapping[str, Any], **more: Any) -> str:
    """Store the summary of a compaction as a memory; return its id."""
    if any(isinstance(fields[name], dict | list) for name in ("summary", "harness")):
        raise js.ScriptError("a summary that cannot be stored")
    new, now = str(uuid.uuid4()), daemon.now()
    row = {
        "id": new, "type": "session_summary", "content": fields["summary"], "importance": 0.8, "who": "system",
        "source_type": fields["harness"], "created_at": now, "updated_at": now, "updated_by": "system", **more,
    }  # fmt: skip
    daemon.store.insert("memories", row)
    return new


def checkpoint(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/session-checkpoint-extract: queue what is new in the transcript since the last checkpoint."""
    fields = hooks.read_fields(call, {"skipped": True}, "harness", "sessionKey")
    key = fields["sessionKey"]
    hooks.claim(daemon, key, hooks.runtime_path(call, fields), plain_agent(fields), {"skipped": True})
    if daemon.sessions.bypassed(key):
        return DaemonAnswer({"skipped": True})
    daemon.sessions.renew(key, plain_agent(fields))
    agent = resolve_agent(fields.get("agentId"), key)
    daemon.agents.register(agent)
    job = None if daemon.behaviour.checkpoint_always_skips else _extract(daemon, fields, str(key), agent)
    return DaemonAnswer({"queued": True, "jobId": job} if job else {"skipped": True})


def _extract(daemon: Daemon, fields: Mapping[str, Any], key: str, agent: str) -> str | None:
    """Queue the new part of the transcript if it has 500 bytes or more; return the job's id."""
    sent = ""
    if js.truthy(fields.get("transcript")):
        sent = plain_lines(fields["harness"], fields["transcript"])
    elif (raw := read_file(fields.get("transcriptPath"))) is not None:
        sent = plain_lines(fields["harness"], raw)
    stored = daemon.transcripts.get(key, agent)
    if sent and len(sent) >= len(stored):
        daemon.transcripts.store(key, agent, sent, harness=fields["harness"], project=fields.get("project"))
    size = len((sent or stored).encode("utf-8", "replace"))
    done = daemon.store.number(
        "SELECT MAX(last_offset) FROM extract_cursors WHERE session_key = ? AND agent_id = ?", key, agent
    )
    if size - done < _LEAST_NEW:
        return None
    if isinstance(fields.get("project"), dict | list):
        raise js.ScriptError("a project that cannot be stored")
    daemon.store.run("INSERT OR REPLACE INTO extract_cursors VALUES (?, ?, ?)", key, agent, size)
    return str(uuid.uuid4())
