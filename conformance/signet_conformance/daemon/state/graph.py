"""The entity graph: stores structured saves, finds the entities that a text names, and what is known about them."""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Sequence
from typing import Any, Final

from signet_conformance.daemon import js
from signet_conformance.daemon.state.store import Store
from signet_conformance.daemon.state.texts import WORDS, decides, graph_words, names_in

#: Types that an entity may have; those of other types are not stored.
ENTITY_TYPES: Final = WORDS["entity_types"]
_NO_ENTITIES: Final = WORDS["no_entities"]
_MOST_BLOCK: Final = 1000


def canonical(name: str) -> str:
    """The form of `name` that identifies an entity or an aspect."""
    return " ".join(name.strip(js.BLANKS).lower().split())


def _entity_type(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise js.ScriptError("an entity type is not a string")
    return re.sub(r"[\s-]+", "_", value.strip(js.BLANKS).lower()) or None if value else None


def _key(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise js.ScriptError("a key is not a string")
    text = re.sub(r"[^a-z0-9]+", "_", (value or "").strip(js.BLANKS).lower()).strip("_")
    return text[:120] if len(text) >= 3 else None


def _is_storable(name: Any, kind: str | None) -> bool:
    if not isinstance(name, str):
        raise js.ScriptError("an entity name is not a string")
    bare = canonical(name)
    if bare.isdigit() or bare in _NO_ENTITIES or re.match(r"(?:current|pending|primary)\s", bare):
        return False
    known = kind in ENTITY_TYPES
    return (known or kind in (None, "extracted", "unknown")) and (known or len(bare) >= 4)


class Graph:
    """Entities with aspects and attributes, each belonging to an agent."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def save(self, structured: dict[str, Any], *, memory: str, content: str, agent: str, now: str) -> int:
        """Store the `structured` part of a save; return how many mentions of entities it added.

        Raises `ScriptError` for parts of a wrong type; the caller's transaction then undoes all of it.
        """
        linked = 0
        for triple in structured.get("entities") or []:
            linked += self._save_triple(_object(triple), memory, agent, now)
        kind, weight = ("constraint", 0.85) if decides(content) else ("attribute", 0.5)
        seen: list[str] = []
        for aspect in structured.get("aspects") or []:
            entity = self._aspect_entity(_object(aspect), agent, now)
            if entity is None:
                continue
            linked += self._mention(memory, entity)
            seen.append(entity)
            self._save_aspect(aspect, entity, memory, agent, now, kind=kind, weight=weight)
        for index, source in enumerate(seen):
            for target in seen[index + 1 :]:
                if source != target:
                    self._store.run(
                        "INSERT OR IGNORE INTO entity_dependencies VALUES (?, ?, ?, 0.3)", source, target, agent
                    )
        return linked

    def _save_triple(self, triple: dict[str, Any], memory: str, agent: str, now: str) -> int:
        kinds = _entity_type(triple.get("sourceType")), _entity_type(triple.get("targetType"))
        names = triple.get("source"), triple.get("target")
        if not all(_is_storable(name, kind) for name, kind in zip(names, kinds, strict=True)):
            return 0
        ids = [self._entity(str(name), kind, agent, now) for name, kind in zip(names, kinds, strict=True)]
        return sum(self._mention(memory, entity) for entity in ids)

    def _aspect_entity(self, aspect: dict[str, Any], agent: str, now: str) -> str | None:
        name, kind = aspect.get("entityName"), _entity_type(aspect.get("entityType"))
        if not isinstance(name, str):
            raise js.ScriptError("an entity name is not a string")
        row = self._store.row(
            "SELECT id FROM entities WHERE canonical_name = ? AND agent_id = ?", canonical(name), agent
        )
        if row:
            return str(row["id"])
        return self._entity(name, kind, agent, now) if _is_storable(name, kind) else None

    def _entity(self, name: str, kind: str | None, agent: str, now: str) -> str:
        row = self._store.row(
            "SELECT id FROM entities WHERE (canonical_name = ? AND agent_id = ?) OR name = ?",
            canonical(name), agent, name,
        )  # fmt: skip
        if row:
            self._count_mention(row["id"], now)
            return str(row["id"])
        new = str(uuid.uuid4())
        entity = {
            "id": new, "name": name, "canonical_name": canonical(name), "entity_type": kind or "extracted",
            "agent_id": agent, "mentions": 1, "created_at": now, "updated_at": now,
        }  # fmt: skip
        self._store.insert("entities", entity)
        return new

    def _count_mention(self, entity: str, now: str) -> None:
        self._store.run("UPDATE entities SET mentions = mentions + 1, updated_at = ? WHERE id = ?", now, entity)

    def _mention(self, memory: str, entity: str) -> int:
        return self._store.run("INSERT OR IGNORE INTO entity_mentions VALUES (?, ?)", memory, entity)

    def _save_aspect(
        self, aspect: dict[str, Any], entity: str, memory: str, agent: str, now: str, *, kind: str, weight: float
    ) -> None:
        name, attributes = aspect.get("aspect"), aspect.get("attributes")
        if not isinstance(name, str) or not isinstance(attributes, list):
            raise js.ScriptError("an aspect lacks its name or its attributes")
        self._store.run(
            "INSERT OR IGNORE INTO entity_aspects (id, entity_id, agent_id, name, canonical_name)"
            " VALUES (?, ?, ?, ?, ?)",
            str(uuid.uuid4()), entity, agent, name, canonical(name),
        )  # fmt: skip
        row = self._store.row(
            "SELECT id FROM entity_aspects WHERE entity_id = ? AND canonical_name = ?", entity, canonical(name)
        )
        for attribute in attributes:
            content = _object(attribute).get("content")
            if row is None or not isinstance(content, str):
                raise js.ScriptError("an attribute lacks its content")
            normal = content.strip(js.BLANKS).lower()
            if self._store.row(
                "SELECT 1 FROM entity_attributes WHERE aspect_id = ? AND agent_id = ? AND normalized_content = ?"
                " AND status = 'active'",
                row["id"], agent, normal,
            ):  # fmt: skip
                continue
            self._store.run(
                "INSERT INTO entity_attributes (id, aspect_id, agent_id, memory_id, kind, content, normalized_content,"
                " group_key, claim_key, confidence, importance, updated_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                str(uuid.uuid4()), row["id"], agent, memory, kind, content, normal, _key(attribute.get("groupKey")),
                _key(attribute.get("claimKey")), _or_default(attribute.get("confidence"), 0.7),
                _or_default(attribute.get("importance"), weight), now,
            )  # fmt: skip

    def drop_facts_of_deleted(self, agent: str) -> None:
        """Supersede the attributes of `agent` whose memory was deleted."""
        self._store.run(
            """UPDATE entity_attributes SET status = 'superseded' WHERE agent_id = ? AND status = 'active'
               AND memory_id IN (SELECT id FROM memories WHERE is_deleted = 1)""",
            agent,
        )  # fmt: skip

    def link(self, memory: str, content: str, agent: str, now: str) -> int:
        """Record a mention of every known entity of `agent` that `content` names; return how many were new."""
        linked = 0
        for name in names_in(content):
            row = self._store.row(
                "SELECT id FROM entities WHERE (canonical_name = ? OR name = ?) AND agent_id = ?",
                canonical(name), name, agent,
            )  # fmt: skip
            if row:
                self._count_mention(row["id"], now)
                linked += self._mention(memory, row["id"])
        return linked

    def named_by(self, query: str, agent: str) -> list[sqlite3.Row]:
        """Up to 20 entities of `agent` that words of `query` name, best first: id, name, entity_type."""
        words = graph_words(query)
        if not words:
            return []
        return self._store.rows(
            """SELECT e.id, e.name, e.entity_type FROM entities_fts JOIN entities e ON e.rowid = entities_fts.rowid
               WHERE entities_fts MATCH ? AND e.agent_id = ? ORDER BY rank LIMIT 20""",
            " OR ".join(f'"{word}"' for word in words), agent,
        )  # fmt: skip

    def memories_of(self, entities: Sequence[sqlite3.Row], agent: str) -> dict[str, float]:
        """The memories behind the attributes of `entities` and of what they depend on, with their weight."""
        ids = [row["id"] for row in entities]
        marks = ",".join("?" * len(ids))
        near = self._store.rows(
            f"""SELECT target_entity_id AS id FROM entity_dependencies
                WHERE agent_id = ? AND source_entity_id IN ({marks})""",
            agent, *ids,
        )  # fmt: skip
        ids = list(dict.fromkeys([*ids, *(row["id"] for row in near)]))
        rows = self._store.rows(
            f"""SELECT a.memory_id, MAX(a.importance) AS weight FROM entity_attributes a
                JOIN entity_aspects s ON s.id = a.aspect_id
                WHERE s.entity_id IN ({",".join("?" * len(ids))}) AND a.agent_id = ? AND a.status = 'active'
                  AND a.memory_id IS NOT NULL GROUP BY a.memory_id LIMIT 50""",
            *ids, agent,
        )  # fmt: skip
        return {row["memory_id"]: row["weight"] for row in rows}

    def aspects_of(self, entity: str, agent: str, *, constraints: bool = True) -> list[tuple[str, list[sqlite3.Row]]]:
        """The aspects of `entity` that have active attributes, each with up to five of them, most important first."""
        only = "" if constraints else " AND kind != 'constraint'"
        aspects = self._store.rows(
            "SELECT id, name FROM entity_aspects WHERE entity_id = ? AND agent_id = ? ORDER BY weight DESC LIMIT 10",
            entity, agent,
        )  # fmt: skip
        named = [
            (
                str(aspect["name"]),
                self._store.rows(
                    f"""SELECT content, status, importance FROM entity_attributes WHERE aspect_id = ? AND agent_id = ?
                        AND status = 'active'{only} ORDER BY importance DESC LIMIT 5""",
                    aspect["id"], agent,
                ),
            )
            for aspect in aspects
        ]  # fmt: skip
        return [(name, attributes) for name, attributes in named if attributes]

    def block_about(self, entity: sqlite3.Row, agent: str) -> tuple[str, int] | None:
        """A text about `entity` and how many facts it holds; None if nothing is known."""
        aspects = self.aspects_of(entity["id"], agent, constraints=False)
        lines = [f"- {name}: {'; '.join(row['content'] for row in attributes)}" for name, attributes in aspects]
        rules = self._store.rows(
            """SELECT DISTINCT a.content FROM entity_aspects s JOIN entity_attributes a ON a.aspect_id = s.id
               WHERE s.entity_id = ? AND a.agent_id = ? AND a.kind = 'constraint' AND a.status = 'active'
               ORDER BY a.importance DESC LIMIT 10""",
            entity["id"], agent,
        )  # fmt: skip
        related = self._store.rows(
            """SELECT e.name FROM entity_dependencies d JOIN entities e ON e.id = d.target_entity_id
               WHERE d.source_entity_id = ? AND d.agent_id = ? AND d.strength >= 0.3 LIMIT 8""",
            entity["id"], agent,
        )  # fmt: skip
        if rules:
            lines.append(f"- Constraints: {'; '.join(row['content'] for row in rules)}")
        if related:
            lines.append(f"- Related: {', '.join(row['name'] for row in related)}")
        if not lines:
            return None
        text = f"[{entity['name']} ({entity['entity_type']})]\n" + "\n".join(lines)
        return text[:_MOST_BLOCK], sum(len(attributes) for _, attributes in aspects) + len(rules)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise js.ScriptError("a part of the structured payload is not an object")
    return value


def _or_default(value: Any, default: float) -> Any:
    return default if value is None else value


def hints_in(values: Sequence[Any]) -> list[str]:
    """The texts among `values` that serve as hints: 5 to 300 characters."""
    return [hint for value in values if (hint := js.text_or_none(value)) and 5 <= len(hint) <= 300]
