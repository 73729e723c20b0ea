"""The arguments of a tool's step, the requests that it caused, and findings on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from signet_conformance.errors import first_of
from signet_conformance.facts import DELETE, FORGET, MODIFY, PATCH, REDACTION, SAVES, Call, Recording, plain
from signet_conformance.files.json_values import list_in, objects_in, text_in
from signet_conformance.finding import Finding
from signet_conformance.rules.outcome import breach_of, in_body, undecided
from signet_conformance.rules.transcripts import SHORTEST_TEXT
from signet_conformance.trace.marks import StepMark

FORGETS = frozenset({DELETE, FORGET})
CHANGES = frozenset({PATCH, MODIFY})
_BY_FILTER = "*"
"""Used for the ids of memories that a request, or a tool, chooses by a filter."""
_SUPERSEDED = re.compile(r"/api/memories/([^/]+)/(?:supersede|tombstone)")
NOT_WHOLE = "the step was disturbed or stopped, or not every request was accepted"

NO_ARGUMENTS = "the step's mark does not say what the tool was given"


def requests_of(recording: Recording, mark: StepMark) -> Iterator[Call]:
    """The requests during a step, except those that another session's key marks as its own."""
    timeline = recording.timeline
    for call in timeline.calls_in(mark):
        owner = timeline.session_of(call.key)
        if owner is None or timeline.are_related(owner, mark.session):
            yield call


def is_tool_output(recording: Recording, text: str, before: int) -> bool:
    """Whether a text contains the id or the words of a memory in an answer to a tool's request until then."""
    words = " ".join(text.split())
    answers = (
        call.answer
        for mark in recording.timeline.steps
        if mark.tool is not None and mark.seq < before
        for call in recording.timeline.calls_in(mark)
        if call.seq < before and call.accepted and call.answer is not None
    )
    rows = (row for answer in answers for row in (answer, *objects_in(answer.get("results") or answer.get("memories"))))
    texts = (" ".join(text_in(row.get(name)).split()) for row in rows for name in ("id", "content"))
    return any(len(each) >= SHORTEST_TEXT and each in words for each in texts)


def identifier_in(value: object) -> str:
    """The id in a member; empty if it is not text."""
    return text_in(value).strip()


def is_value(sent: object, wanted: object) -> bool:
    """Whether two values are equal, however they are written."""
    if isinstance(sent, list) or isinstance(wanted, list):
        return members_of(sent) == members_of(wanted)
    try:
        return sent == wanted or abs(float(str(sent)) - float(str(wanted))) < 1e-9
    except ValueError:
        left, right = plain(f"{sent}"), plain(f"{wanted}")
        return left.casefold() == right.casefold() or (_time(left) is not None and _time(left) == _time(right))


def members_of(value: object) -> set[str]:
    """The members of a list, or of a text that names them with commas between."""
    listed = value if isinstance(value, list) else f"{value}".split(",")
    return {plain(f"{each}") for each in listed}


def _time(text: str) -> datetime | None:
    """The time that a text in ISO 8601 names, for a day its first moment; None for any other text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


class AskedStep(Struct, frozen=True):
    """A tool's step, its arguments, and the requests that it can have caused, in order."""

    mark: StepMark
    given: Mapping[str, Any]
    calls: Sequence[Call]
    is_whole: bool
    """Whether neither the kit nor the host kept a request from being made or recorded."""
    superseded: frozenset[str] = frozenset()
    """The ids of memories that the step's accepted requests mark as replaced."""

    @property
    def undisturbed(self) -> bool:
        """Return True if every request was accepted: then the connector did not give up."""
        return self.is_whole and all(call.accepted for call in self.calls)

    def breach(self, name: str, call: Call, /, **facts: Any) -> Finding:
        """The breach by a request of this step, as the entry describes it under `name`."""
        return breach_of("SIG-MEM-006", name, call, step=self.mark.index, **facts)

    def undecided(self, call: Call, why: str) -> Finding:
        """The undecided finding on a request of this step."""
        return undecided(call, message=f"step {self.mark.index}: {why}")

    def if_redacted(self, call: Call, *texts: str) -> Finding | None:
        """The undecided finding on a request if one of the texts that it is judged by was redacted."""
        return self.undecided(call, "the text was redacted") if any(REDACTION in text for text in texts) else None

    def missing(self, ids: Sequence[str]) -> Finding:
        """The breach of a step that leaves out memories it was given; undecided if the step was disturbed."""
        if not self.undisturbed:
            return self.undecided(self.calls[0], NOT_WHOLE)
        kind = "not changed" if self.mark.tool == "memory_modify" else "not forgotten"
        return self.breach(kind, self.calls[0], count=len(ids), ids=list_some(ids))


class EarlierSteps:
    """What earlier steps asked for, which a late request may still carry."""

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.changes: set[str] = set()
        """The ids of memories that were to be changed."""
        self.forgets: set[str] = set()
        """The ids of memories that were to be forgotten, and _BY_FILTER where a filter chose them."""
        self.rows: dict[str, str] = {}
        """The texts of memories that were stored or changed, by their ids."""
        self._stored: set[str] = set()

    def is_late(self, text: str) -> bool:
        """Whether a stored text may be one that was said before and not stored yet."""
        return text not in self._stored and any(
            text == earlier or (len(earlier) >= SHORTEST_TEXT and earlier in text) for earlier in self.texts
        )

    def unasked_ids(self, call: Call) -> set[str]:
        """The ids that an accepted request forgets or changes although no earlier step asked for it."""
        return ids_affected(call) - (self.forgets if call.operation in FORGETS else self.changes)

    def record(self, mark: StepMark, writes: Sequence[Call]) -> None:
        """Add a step and its writes."""
        given = mark.arguments or {}
        for call in writes:
            if call.accepted:
                text = content_of(call.body)
                self._stored.add(text)
                if call.operation in SAVES and (identifier := identifier_in(call.answer_value("id"))):
                    self.rows[identifier] = text
                for identifier, members, _ in sent_changes(call):
                    if new := content_of(members):
                        self.rows[identifier] = new
        asked = (given.get("content"), *(members.get("content") for _, members in asked_changes(given)))
        self.texts |= {plain(text) for text in (mark.text, mark.reply, *asked) if isinstance(text, str)}
        if mark.tool == "memory_modify":
            self.changes |= {identifier for identifier, _ in asked_changes(given)}
        elif mark.tool == "memory_forget" and given.get("mode") != "preview":
            self.forgets |= asked_ids(given) or {_BY_FILTER}


def content_of(members: Mapping[str, Any]) -> str:
    """The plain text of a memory among the arguments of a tool, or in a body; empty without one."""
    return plain(text_in(members.get("content")))


def asked_ids(given: Mapping[str, Any]) -> set[str]:
    """The ids that the arguments of a tool, or a body, name."""
    ids = given.get("ids")
    return {identifier_in(each) for each in (*list_in(ids), given.get("id")) if identifier_in(each)}


def asked_changes(given: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The memories that a tool is to change: the id of each, and the members that it is given."""
    patches = given.get("patches")
    for patch in patches if isinstance(patches, list) else [given]:
        if isinstance(patch, dict) and identifier_in(patch.get("id")):
            yield identifier_in(patch.get("id")), patch


def sent_changes(call: Call) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Each memory that a request changes: its id, the members that are given, and the pointer to the id."""
    if call.operation == PATCH:
        yield identifier_in(call.memory_id), call.body, "/request/path"
    patches = call.body.get("patches")
    for place, patch in enumerate(list_in(patches)):
        if isinstance(patch, dict):
            yield identifier_in(patch.get("id")), patch, in_body("patches", place, "id")


def is_executed(call: Call) -> bool:
    """Whether a request forgets memories, and does not only show which."""
    return call.operation == FORGET and call.body.get("mode") == "execute"


def ids_forgotten(call: Call) -> set[str]:
    """The ids that a request forgets."""
    if call.operation == DELETE:
        return {identifier_in(call.memory_id)}
    return asked_ids(call.body) if is_executed(call) else set()


def ids_affected(call: Call) -> set[str]:
    """The ids that an accepted request changes or forgets."""
    if not call.accepted:
        return set()
    by_filter = {_BY_FILTER} if is_executed(call) and not ids_forgotten(call) else set()
    changed = {identifier for identifier, _, _ in sent_changes(call)}
    return ids_forgotten(call) | changed | by_filter


def ids_superseded(call: Call) -> set[str]:
    """The ids of memories that an accepted request marks as replaced by another one."""
    if not call.accepted:
        return set()
    match = _SUPERSEDED.fullmatch(call.path)
    replaced = call.body.get("supersedes") if call.operation in SAVES else None
    ids = {identifier_in(each) for each in (replaced if isinstance(replaced, list) else (replaced,))}
    return (ids | ({unquote(match[1])} if match else set())) - {""}


def list_some(ids: Iterable[str]) -> str:
    """Three of the ids, and the number of the others."""
    return first_of(sorted(ids), 3)
