"""The state of sessions: claims, tombstones of ended sessions, bypass, answered starts, epochs, presence.

Times come from the clock that is passed in. Epochs are in the store, and claims also there if the version keeps them
over a restart; all else is in memory.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from signet_conformance.daemon import js
from signet_conformance.daemon.behaviour import Behaviour
from signet_conformance.daemon.js import Clock
from signet_conformance.daemon.state.store import Store
from signet_conformance.daemon.wire import present

CLAIM_SECONDS: Final = 4 * 3600
TOMBSTONE_SECONDS: Final = 30 * 60
WARN_SECONDS: Final = 30 * 60
START_MEMORY_SECONDS: Final = 7 * 24 * 3600


def _name_of(key: object) -> str:
    """A name that no string equals, for a key of another type; each object and list gets a new one."""
    return f"\0{uuid.uuid4() if isinstance(key, dict | list) else key}"


@dataclass
class Claim:
    """A session held by one runtime path; `expires` moves with every hook of that path."""

    key: str
    agent: str
    path: str
    since: float
    expires: float


@dataclass(frozen=True)
class Tombstone:
    """An ended session and the runtime path that ended it, if one was given."""

    path: str | None
    expires: float


class SessionClaims:
    """The claims of one daemon. A session key is trimmed and loses one leading ``session:``, unless keys are raw.

    Claims that an earlier process kept are taken up, unless they have `expired` since.
    """

    def __init__(self, clock: Clock, behaviour: Behaviour, store: Store, *, expired: bool = False) -> None:
        self._clock = clock
        self._behaviour = behaviour
        self._store = store
        self._claims: dict[str, Claim] = {}
        self._ended: dict[str, Tombstone] = {}
        self._bypassed: dict[str, float] = {}
        self._warned: set[str] = set()
        if behaviour.claims_persist and expired:
            store.run("DELETE FROM session_claims")
        elif behaviour.claims_persist:
            for row in store.rows("SELECT * FROM session_claims"):
                self._claims[row["claim_key"]] = Claim(
                    row["session_key"], row["agent_id"], row["runtime_path"], row["claimed_at"], row["expires_at"]
                )

    def normal(self, key: object) -> str:
        """The normal form of `key`. Raises `ScriptError` for anything but a string, unless keys are raw."""
        if self._behaviour.keys_are_raw:
            return key if isinstance(key, str) else _name_of(key)
        text = js.trimmed(key) or ""
        return text.removeprefix("session:")

    def _slot(self, key: object, agent: str) -> str:
        normal = self.normal(key)
        return f"{agent}\0{normal}" if self._behaviour.claims_by_agent else normal

    def claim(self, key: object, path: str, agent: str) -> str | None:
        """Claim the session for `path`; return None on success, else the path that holds it."""
        slot = self._slot(key, agent)
        now = self._clock()
        self._ended.pop(slot, None)
        held = self._claims.get(slot)
        if held and held.path == path:
            held.expires = now + CLAIM_SECONDS
        elif held and now <= held.expires:
            return held.path
        else:
            held = self._claims[slot] = Claim(self.normal(key), agent, path, now, now + CLAIM_SECONDS)
        self._persist(slot, held)
        return None

    def _persist(self, slot: str, claim: Claim | None) -> None:
        if not self._behaviour.claims_persist:
            return
        if claim is None:
            self._store.run("DELETE FROM session_claims WHERE claim_key = ?", slot)
            return
        self._store.run(
            "INSERT OR REPLACE INTO session_claims VALUES (?, ?, ?, ?, ?, ?)",
            slot, claim.key, claim.agent, claim.path, claim.since, claim.expires,
        )  # fmt: skip

    def _live(self, slot: str) -> Claim | None:
        held = self._claims.get(slot)
        if held and self._clock() > held.expires:
            self._forget(slot, held.key)
            return None
        return held

    def _forget(self, slot: str, key: str) -> None:
        if self._claims.pop(slot, None):
            self._persist(slot, None)
        self._bypassed.pop(key, None)
        self._warned.discard(key)

    def owner(self, key: object, agent: str) -> str | None:
        """The runtime path that holds the session, else None."""
        held = self._live(self._slot(key, agent))
        return held.path if held else None

    def tombstone_of(self, key: object, agent: str) -> Tombstone | None:
        """The tombstone of a session that ended within the last 30 minutes, else None."""
        slot = self._slot(key, agent)
        stone = self._ended.get(slot)
        if stone and self._clock() > stone.expires:
            del self._ended[slot]
            return None
        return stone

    def release(self, key: object, agent: str) -> None:
        """Drop the claim and the bypass of the session."""
        self._forget(self._slot(key, agent), self.normal(key))

    def end(self, key: object, agent: str, path: str | None) -> None:
        """Release the session and, where the version has them, leave a tombstone."""
        slot = self._slot(key, agent)
        held = self._claims.get(slot)
        if path is None and held and self._behaviour.tombstone_takes_claim_path:
            path = held.path
        # The daemon removes a leading "session:" twice here, so a claim on "session:session:x" outlives its end.
        self.release(self.normal(key), agent)
        self._ended[slot] = Tombstone(path, self._clock() + TOMBSTONE_SECONDS)

    def active(self) -> list[Claim]:
        """Every claim that has not expired."""
        return [claim for slot in list(self._claims) if (claim := self._live(slot))]

    def bypass(self, key: object, *, on: bool) -> None:
        """Switch the bypass of a session on or off; it lasts as long as a claim."""
        if on:
            self._bypassed[self.normal(key)] = self._clock() + CLAIM_SECONDS
        else:
            self._bypassed.pop(self.normal(key), None)

    def bypassed(self, key: object) -> bool:
        """Whether hooks of the session are answered with nothing."""
        until = self._bypassed.get(self.normal(key))
        return until is not None and self._clock() <= until

    def renew(self, key: object, agent: str) -> str | None:
        """Give the claim its full time again. Return the new moment of expiry, None without a claim."""
        slot = self._slot(key, agent)
        held = self._live(slot)
        if not held:
            return None
        held.expires = self._clock() + CLAIM_SECONDS
        if held.key in self._bypassed:
            self._bypassed[held.key] = held.expires
        self._warned.discard(held.key)
        self._persist(slot, held)
        return js.iso(held.expires)

    def warnings(self, key: object, agent: str) -> list[str] | None:
        """Warn once, until it is renewed, of a claim that expires within 30 minutes; always of one that has expired."""
        held = self._claims.get(self._slot(key, agent))
        if not held or self.bypassed(key):
            return None
        left = held.expires - self._clock()
        if left <= 0:
            return ["session has expired — reconnect to start a new session"]
        if left > WARN_SECONDS or held.key in self._warned:
            return None
        self._warned.add(held.key)
        minutes = max(1, round(left / 60))
        return [f"session expires in ~{minutes} minute{'' if minutes == 1 else 's'} — consider /checkpoint"]


class StartedSessions:
    """The starts of the last 7 days that were answered in full; another start with the same dedupe key gets a stub."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, ...] | None, float] = {}

    def contains(self, dedupe_key: tuple[str, ...]) -> bool:
        """Whether a start with this dedupe key was answered in full."""
        when = self._seen.get(dedupe_key)
        return when is not None and self._clock() - when <= START_MEMORY_SECONDS

    def remember(self, dedupe_key: tuple[str, ...]) -> None:
        """Note that a start with this dedupe key was answered in full."""
        self._seen[dedupe_key] = self._clock()

    def forget(self, dedupe_key: tuple[str, ...] | None) -> None:
        """Forget the start with this dedupe key."""
        self._seen.pop(dedupe_key, None)


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
        key = js.trimmed(key)
        if not key:
            return None
        epoch = self.current(key, agent) + 1
        self._store.run("INSERT OR IGNORE INTO context_epochs VALUES (?, ?, ?)", key, agent, epoch)
        return epoch

    def already_shown(self, key: str, agent: str, ids: Sequence[str]) -> set[str]:
        """Those of `ids` that the session was shown in its current epoch."""
        rows = self._store.rows(
            f"""SELECT item_id FROM recall_events WHERE session_key = ? AND agent_id = ? AND context_epoch = ?
                AND item_id IN ({",".join("?" * len(ids))})""",
            key, agent, self.current(key, agent), *ids,
        )  # fmt: skip
        return {row["item_id"] for row in rows}

    def note_shown(self, key: str, agent: str, ids: Sequence[str]) -> None:
        """Note that the session was shown `ids` in its current epoch."""
        epoch = self.current(key, agent)
        self._store.run_many(
            "INSERT OR IGNORE INTO recall_events VALUES (?, ?, ?, ?)", [(key, agent, epoch, item) for item in ids]
        )


_STALE_SECONDS: Final = 4 * 3600


class AgentPresence:
    """The sessions seen in the last four hours, in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[str, dict[str, Any]] = {}

    def _prune(self) -> None:
        now = self._clock()
        self._sessions = {
            slot: entry for slot, entry in self._sessions.items() if now - entry["seen"] <= _STALE_SECONDS
        }

    def register(
        self, *, session: str | None, agent: str, harness: Any, project: str | None, path: str | None
    ) -> dict[str, Any]:
        """Register a session as present; return its public entry. Raises `ScriptError` if `harness` is no string."""
        self._prune()
        name = js.trimmed(harness) or "unknown"
        slot = (
            f"session:{session}"
            if session
            else "ephemeral:" + ":".join(quote(part, safe="!'()*~") for part in (agent, name, project or "*"))
        )
        entry = self._sessions.setdefault(slot, {"since": self._clock()})
        entry |= {"key": slot, "session": session, "agent": agent, "harness": name, "project": project, "path": path}
        entry["seen"] = self._clock()
        return _public(entry)

    def touch(self, session: str, agent: str | None = None) -> bool:
        """Note that the session (of `agent`, if given) is still present; return False if it is not known."""
        self._prune()
        entry = self._sessions.get(f"session:{session}")
        if not entry or (agent and entry["agent"] != agent):
            return False
        entry["seen"] = self._clock()
        return True

    def leave(self, session: Any) -> bool:
        """Remove the session; return False if it was not known."""
        return self._sessions.pop(f"session:{js.trimmed(session)}", None) is not None

    def entries(self) -> list[dict[str, Any]]:
        """The internal entries of all present sessions (session, agent, path, since), the last seen first."""
        self._prune()
        return sorted(self._sessions.values(), key=lambda entry: -entry["seen"])


def _public(entry: dict[str, Any]) -> dict[str, Any]:
    return present(
        key=entry["key"], sessionKey=entry["session"], agentId=entry["agent"], harness=entry["harness"],
        project=entry["project"], runtimePath=entry["path"], provider=entry["harness"],
        startedAt=js.iso(entry["since"]), lastSeenAt=js.iso(entry["seen"]),
    )  # fmt: skip
