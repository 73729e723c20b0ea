"""What a session was already shown: recalled rows are left out until its context epoch moves on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from signet_conformance.daemon.values import trimmed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from signet_conformance.daemon.state.store import Store


class Epochs:
    """The context epochs of all sessions and the rows shown in each. Keys are trimmed, not otherwise normalised."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def current(self, key: str, agent: str) -> int:
        """The epoch that the session is in; 0 at first."""
        return self._store.number(
            "SELECT MAX(context_epoch) FROM context_epochs WHERE session_key = ? AND agent_id = ?", key, agent
        )

    def advance(self, key: Any, agent: str) -> int | None:
        """Open the next epoch and return its number; None without a key."""
        key = trimmed(key)
        if not key:
            return None
        epoch = self.current(key, agent) + 1
        self._store.run("INSERT OR IGNORE INTO context_epochs VALUES (?, ?, ?)", key, agent, epoch)
        return epoch

    def shown(self, key: str, agent: str, ids: Sequence[str]) -> set[str]:
        """Those of `ids` that the session was shown in its present epoch."""
        rows = self._store.rows(
            f"""SELECT item_id FROM recall_events WHERE session_key = ? AND agent_id = ? AND context_epoch = ?
                AND item_id IN ({",".join("?" * len(ids))})""",
            key, agent, self.current(key, agent), *ids,
        )  # fmt: skip
        return {row["item_id"] for row in rows}

    def show(self, key: str, agent: str, ids: Sequence[str]) -> None:
        """Note that the session was shown `ids` in its present epoch."""
        epoch = self.current(key, agent)
        self._store.run_many(
            "INSERT OR IGNORE INTO recall_events VALUES (?, ?, ?, ?)", [(key, agent, epoch, item) for item in ids]
        )
