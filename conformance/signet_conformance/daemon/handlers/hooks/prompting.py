"""The prompt hook: claims the session, and answers with what is known of the entities that the prompt names."""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.handlers import hooks
from signet_conformance.daemon.state import Daemon
from signet_conformance.daemon.state.agents import plain_agent, resolve_agent
from signet_conformance.daemon.state.store import Store
from signet_conformance.daemon.state.texts import WORDS, phrase, says_little, subject_words, without_envelope
from signet_conformance.daemon.state.transcripts import plain_lines, read_file
from signet_conformance.daemon.wire import DaemonAnswer, DaemonRequest, present

CONTEXT_VERSION: Final = 1


def prompt_submit(daemon: Daemon, call: DaemonRequest) -> DaemonAnswer:
    """POST hooks/user-prompt-submit: what is known about the entities that the prompt names."""
    fields = hooks.read_fields(call, {"inject": "", "memoryCount": 0}, "harness", "userMessage or userPrompt")
    texts = [text for name in ("userMessage", "userPrompt") if (text := js.text_or_none(fields.get(name)))]
    path = hooks.runtime_path(call, fields)
    session, agent = js.text_or_none(fields.get("sessionKey")), plain_agent(fields)
    known = bool(session and daemon.sessions.owner(session, agent))
    session_state = {"sessionKnown": known}
    hooks.claim(daemon, session, path, agent, {"inject": "", "memoryCount": 0, **session_state})
    if not session or not daemon.presence.touch(session):
        hooks.register_session(daemon, fields, path)
    if hooks.is_bypassed(daemon, fields):
        return DaemonAnswer({"inject": "", "memoryCount": 0, "bypassed": True})
    prompt = next((text for sent in texts if (text := without_envelope(sent))), "")
    return DaemonAnswer({**_prompt(daemon, fields, prompt), **session_state})


def _prompt(daemon: Daemon, fields: Mapping[str, Any], prompt: str) -> dict[str, Any]:
    js.trimmed(fields["harness"])
    key = fields.get("sessionKey")
    agent = resolve_agent(fields.get("agentId"), key)
    if js.truthy(key):
        _store_turn(daemon, fields, prompt, agent)
    lines, engine = context_for(daemon.store, prompt, agent)
    today = f"# Current Date & Time\n{js.date_line(daemon.clock())}"
    inject = "\n".join([today, "", "## Relevant Entity Context", "", *lines, ""]) if lines else ""
    if not lines and not daemon.behaviour.prompt_says_engine:
        inject = f"{today}\n\n## Memory Check\n\nNothing that is known matches this turn for certain.\n"
    answer = present(
        inject=inject,
        memoryCount=len(lines),
        queryTerms=" ".join(subject_words(prompt)) or None,
        engine=engine if lines or daemon.behaviour.prompt_says_engine else None,
        warnings=daemon.sessions.warnings(key, agent) if js.truthy(key) else None,
    )
    if daemon.behaviour.prompt_has_envelope:
        answer |= {"dynamicContext": inject}
        if inject:
            answer |= {"contextHash": hashlib.sha256(inject.encode()).hexdigest(), "contextVersion": CONTEXT_VERSION}
    if daemon.behaviour.prompt_has_clock:
        answer["clockContext"] = f"Current date/time: {js.moment_line(daemon.clock())}"
    return answer


def _store_turn(daemon: Daemon, fields: Mapping[str, Any], prompt: str, agent: str) -> None:
    """Store the transcript that came with a prompt, or add the turn to the one stored."""
    key = str(fields["sessionKey"])
    stored = daemon.transcripts.get(key, agent)
    sent = sent_transcript(fields)
    if sent:
        text = sent if len(sent) >= len(stored) else stored
    else:
        last = js.text_or_none(fields.get("lastAssistantMessage"))
        turn = "\n".join([*([f"Assistant: {last}"] if last else []), f"User: {prompt}"])
        text = f"{stored}\n{turn}" if stored else turn
    daemon.transcripts.store(key, agent, text, harness=fields["harness"], project=fields.get("project"))


def sent_transcript(fields: Mapping[str, Any]) -> str:
    """The transcript of a request: that of a readable file, else the inline one.

    Raises `ScriptError` for a wrong type.
    """
    raw = read_file(fields.get("transcriptPath"))
    if raw is not None:
        return plain_lines(fields.get("harness"), raw)
    return plain_lines(fields.get("harness"), fields["transcript"]) if js.truthy(fields.get("transcript")) else ""


_TYPES: Final = ("person", "project")
_MOST_ENTITIES: Final = 2
_MOST_ASPECTS: Final = 3
_MOST_LINES: Final = 8
_BUDGET: Final = 4000
_LEAST_NAME: Final = 12
_LEAST_FACT: Final = 0.8
_GENERIC: Final = WORDS["generic_names"]
_ROLES: Final = WORDS["roles"]


@dataclass(frozen=True)
class _Match:
    entity: sqlite3.Row
    start: int
    end: int
    score: float


def context_for(store: Store, prompt: str, agent: str) -> tuple[Sequence[str], str]:
    """What `agent` knows about the entities that `prompt` names and asks about: the lines to inject, and the engine.

    The engine is one of entity-context, low-signal, no-entity and no-aspect-hit.
    """
    if says_little(prompt):
        return (), "low-signal"
    matches = _matches(store, prompt, agent)
    if not matches:
        return (), "no-entity"
    names = {
        word for match in matches for word in subject_words(f"{match.entity['name']} {match.entity['canonical_name']}")
    }
    forms = frozenset().union(*map(_forms, names))
    asked = subject_words(" ".join([word for word in subject_words(prompt) if word not in forms]))
    lines: list[str] = []
    for match in matches:
        lines += _facts(store, match.entity, agent, asked)
    kept: list[str] = []
    for line in lines:
        if sum(map(len, kept)) + len(line) <= _BUDGET and len(kept) < _MOST_LINES:
            kept.append(line)
    return kept, "entity-context" if kept else "no-aspect-hit"


def _forms(name: str) -> frozenset[str]:
    """The words that count as this word of a name: itself, and mostly its plural."""
    return frozenset((name, f"{name}s") if len(name) >= 4 and name not in _GENERIC else (name,))


def _matches(store: Store, prompt: str, agent: str) -> list[_Match]:
    named = store.rows("SELECT * FROM entities WHERE agent_id = ? AND entity_type IN (?, ?)", agent, *_TYPES)
    words = phrase(prompt).split() if named else []
    known = frozenset(words)
    matches = [match for row in named if (match := _match(row, words, known))]
    best = max((match.score for match in matches), default=0.0)
    matches = [match for match in matches if match.score >= max(_LEAST_NAME, best * 0.45)]
    matches.sort(
        key=lambda match: (-match.score, match.start - match.end, -match.entity["mentions"], match.entity["name"])
    )
    chosen: list[_Match] = []
    for match in matches:
        if all(match.end <= other.start or other.end <= match.start for other in chosen):
            chosen.append(match)
    return chosen[:_MOST_ENTITIES]


def _match(row: sqlite3.Row, words: list[str], known: frozenset[str]) -> _Match | None:
    """Where a prompt names an entity; `known` are its `words`, each once."""
    name = phrase(row["canonical_name"] or row["name"])
    parts = name.split()
    if len(name) < 3 or (
        len(parts) == 1 and (name in _ROLES or name in _GENERIC or name.removesuffix("s") in _GENERIC)
    ):
        return None
    forms = list(map(_forms, parts))
    if any(known.isdisjoint(form) for form in forms):
        return None
    for start in range(len(words) - len(parts) + 1):
        if all(words[start + index] in form for index, form in enumerate(forms)):
            score = len(parts) * 8 + len(name) * 0.35 + math.log1p(max(0, row["mentions"])) + 8 * min(1, row["pinned"])
            return _Match(row, start, start + len(parts), score)
    return None


def _facts(store: Store, entity: sqlite3.Row, agent: str, asked: Sequence[str]) -> list[str]:
    """The lines about `entity` that share a word with what was asked, constraints first."""
    rows = store.rows(
        """SELECT s.id AS aspect, s.name, a.* FROM entity_aspects s JOIN entity_attributes a ON a.aspect_id = s.id
           WHERE s.entity_id = ? AND s.agent_id = ? AND a.agent_id = ? AND a.status = 'active'
           ORDER BY a.importance DESC, a.updated_at DESC LIMIT 192""",
        entity["id"], agent, agent,
    )  # fmt: skip
    scored = [(_fact_score(row, asked), row) for row in rows if row["group_key"] or row["claim_key"]]
    scored = sorted(
        (pair for pair in scored if pair[0] >= _LEAST_FACT), key=lambda pair: (-pair[0], -pair[1]["importance"])
    )
    aspects: set[str] = set()
    chosen: list[sqlite3.Row] = []
    for _, row in scored:
        chosen.append(row)
        aspects.add(row["aspect"])
        if len(aspects) >= _MOST_ASPECTS:
            break
    chosen.sort(key=lambda row: (row["kind"] != "constraint", -row["importance"]))
    return [_line(entity["name"], row) for row in chosen[:_MOST_LINES]]


def _fact_score(row: sqlite3.Row, asked: Sequence[str]) -> float:
    if not asked:
        return 0.0

    def shared(text: str) -> int:
        words = set(subject_words(text))
        return sum(word in words for word in asked)

    in_content, in_claim = shared(row["content"]), shared(phrase(row["claim_key"] or ""))
    if not in_content and not in_claim:
        return 0.0
    strength = 0.18 * min(1, row["importance"]) + 0.1 * min(1, row["confidence"])
    return min(1.0, (0.8 if in_claim else 0.72) + float(strength))


def _line(name: str, row: Any) -> str:
    where = " / ".join((name, row["name"], row["group_key"] or "general", row["claim_key"] or "uncategorized"))
    source = f"memory:{row['memory_id']}" if row["memory_id"] else "v1"
    return f"- [{row['kind']}] {where}: {row['content']} ({source})"
