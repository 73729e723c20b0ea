"""What is known of the entities that memories name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from signet_conformance.daemon.values import leading_integer, text_or_none
from signet_conformance.daemon.wire import Answer, Call

if TYPE_CHECKING:
    import sqlite3

    from signet_conformance.daemon.state.daemon import Daemon


def _entity_item(daemon: Daemon, row: sqlite3.Row, agent: str) -> dict[str, Any]:
    """One entity with how much is known of it."""
    aspects = daemon.store.number("SELECT COUNT(*) FROM entity_aspects WHERE entity_id = ?", row["id"])
    facts = """SELECT COUNT(*) FROM entity_attributes a JOIN entity_aspects s ON s.id = a.aspect_id
               WHERE s.entity_id = ? AND a.agent_id = ? AND a.status = 'active' AND a.kind = ?"""
    depends = "SELECT COUNT(*) FROM entity_dependencies WHERE source_entity_id = ? AND agent_id = ?"
    entity = {
        "id": row["id"], "name": row["name"], "canonicalName": row["canonical_name"], "entityType": row["entity_type"],
        "agentId": row["agent_id"], "mentions": row["mentions"], "pinned": bool(row["pinned"]), "status": "active",
        "pinnedAt": row["pinned_at"], "archivedAt": None, "archivedBy": None, "archiveReason": None,
        "proposalId": None, "proposalEvidence": [], "createdAt": row["created_at"], "updatedAt": row["updated_at"],
    }  # fmt: skip
    return {
        "entity": entity,
        "aspectCount": aspects,
        "attributeCount": daemon.store.number(facts, row["id"], agent, "attribute"),
        "constraintCount": daemon.store.number(facts, row["id"], agent, "constraint"),
        "dependencyCount": daemon.store.number(depends, row["id"], agent),
    }


def knowledge(daemon: Daemon, call: Call) -> Answer:
    """GET knowledge/stats, /hygiene, /entities and /navigation/entities."""
    agent = text_or_none(call.query.get("agent_id")) or "default"
    last = call.path.rsplit("/", 1)[-1]
    if last == "stats":
        return Answer(_knowledge_counts(daemon, agent))
    if last == "hygiene":
        summary = {"missingGroupKey": 0, "missingClaimKey": 0, "missingSourceMemory": 0}
        return Answer(
            {
                "agentId": agent, "suspiciousEntities": [], "duplicateEntities": [], "attributeSummary": summary,
                "safeMentionCandidates": [],
            }
        )  # fmt: skip
    limit = leading_integer(call.query.get("limit"), 50)
    limit = 50 if limit is None else min(max(limit, 1), 200)
    offset = max(leading_integer(call.query.get("offset"), 0) or 0, 0)
    rows = daemon.store.rows(
        "SELECT * FROM entities WHERE agent_id = ? ORDER BY mentions DESC LIMIT ? OFFSET ?", agent, limit, offset
    )
    return Answer({"items": [_entity_item(daemon, row, agent) for row in rows], "limit": limit, "offset": offset})


def _knowledge_counts(daemon: Daemon, agent: str) -> dict[str, int]:
    def count(table: str, more: str = "") -> int:
        return daemon.store.number(f"SELECT COUNT(*) FROM {table} WHERE agent_id = ?{more}", agent)

    return {
        "entityCount": count("entities"), "aspectCount": count("entity_aspects"),
        "attributeCount": count("entity_attributes", " AND kind = 'attribute'"),
        "constraintCount": count("entity_attributes", " AND kind = 'constraint'"),
        "dependencyCount": count("entity_dependencies"), "unassignedMemoryCount": 0, "coveragePercent": 0,
        "feedbackUpdatedAspectCount": 0, "averageAspectWeight": 0, "maxWeightAspectCount": 0, "minWeightAspectCount": 0,
    }  # fmt: skip
