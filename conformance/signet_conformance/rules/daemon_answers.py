"""Requirements on the daemon: on its answers, and on what it keeps: claims, answered starts, tombstones, jobs."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import jsonschema_rs

from signet_conformance import facts
from signet_conformance.contract import contract_version_of, document, reference_daemon, version_document, version_key
from signet_conformance.facts import Call, Recording, once_a_recording, text_or_none
from signet_conformance.files.json_values import object_in, objects_in, pointer as pointer_of, text_in
from signet_conformance.finding import Finding
from signet_conformance.rules.fields import explain, is_valid
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_if, undecided
from signet_conformance.rules.start import CLAIM_ONLY_SINCE, dedupe_key
from signet_conformance.trace.marks import FaultMark, StepMark
from signet_conformance.trace.model import NOT_CARRIED

_INDEX = re.compile(r"/\d+(?=/|$)")


def lost_state(recording: Recording, requirement: str, name: str, *calls: Call, **details: Any) -> Finding:
    """The finding that the daemon lost something it had kept; a breach only if the kit would have marked a restart."""
    breach = breach_of(requirement, name, *calls, **details)
    if recording.marks(StepMark):
        return breach
    return undecided(*calls, message=f"{breach.message}; no mark says whether the daemon was restarted")


def in_answer(*names: str | int) -> str:
    """The JSON pointer to a member of the response body, from the exchange's line."""
    return "/response/body/json" + pointer_of(*names)


def is_own_answer(call: Call) -> bool:
    """Whether the answer is the daemon's own, and arrived: no fault made it, and it was not lost on the way."""
    return call.delivered and call.fault is None and call.error is None


@once_a_recording
def whole_answers(recording: Recording) -> Sequence[Call]:
    """The calls with an answer of the daemon's own that was recorded whole."""
    return [
        call
        for call in recording.calls
        if is_own_answer(call)
        and (response := call.exchange.response) is not None
        and (response.body is None or response.body.kind != "cut")
    ]


def is_served(call: Call) -> bool:
    """Whether the daemon did what it was asked, or refused it because of the session: not bypassed, not invalid."""
    return (
        is_own_answer(call)
        and (call.accepted or call.status == 409)
        and not call.answer_value("bypassed")
        and call.header("x-signet-no-hooks") != "1"
    )


def was_interrupted(recording: Recording, earlier: Call, later: Call) -> bool:
    """Whether the daemon was, or may have been, another process between two calls, or at the later one."""
    places = _interruptions(recording)
    index = bisect_right(places, earlier.seq)
    return index < len(places) and places[index] <= later.seq


@once_a_recording
def _interruptions(recording: Recording) -> Sequence[int]:
    restarts = [mark.seq for mark in recording.marks(FaultMark) if mark.is_restart]
    return sorted([*restarts, *(call.seq for call in recording.troubled if call.fault is None and _is_lost(call))])


def _is_lost(call: Call) -> bool:
    return call.error not in (None, "client_closed", NOT_CARRIED) or call.is_answered(500, 1000)


_VERSION = re.compile(r"\d+\.\d+")
_MCP = "mcp"
_MEMORY_CHANGES = frozenset({"memory-patch", "memory-delete"})


def _body(call: Call) -> Any:
    """The answer's JSON value, its text, or None; an object that was recorded as text is an object."""
    response = call.exchange.response
    body = response.body if response is not None else None
    if body is None:
        return None
    return body.object if body.object is not None else body.value


@cache
def _response_schema(version: str, operation: str | None) -> tuple[Mapping[str, Any], Any] | None:
    """The response schema of an operation in a contract version with its validator; None without a schema."""
    entry = version_document(version)["operations"].get(operation, {}).get("response")
    if entry is None:
        return None
    schema = document(entry["file"])
    return schema, jsonschema_rs.validator_for(schema)


def success_has_its_shape(recording: Recording) -> Iterator[Outcome]:
    """A successful answer has the shape that the contract gives its operation."""
    version = contract_version_of(recording.daemon_version)
    if version_key(recording.daemon_version)[:2] > version_key(reference_daemon(version))[:2]:
        # It is not known in which release between two frozen versions each member was added.
        return
    for call in whole_answers(recording):
        if call.operation == facts.HEALTH or not call.is_answered(200, 300):
            continue
        compiled = _response_schema(version, call.operation)
        if compiled is None:
            continue
        schema, validator = compiled
        answer = {"status": call.status, "body": _body(call)}
        if is_valid(validator, answer):
            yield PASS
            continue
        path, why, received = explain(validator, schema, answer)
        member = "/".join(str(part) for part in path[1:]) or ("status" if path[:1] == ("status",) else "the answer")
        pointer = "/response/status" if path[:1] == ("status",) else in_answer(*path[1:])
        problem, expected = "not as the contract requires", why[:200]
        if why == "absent":
            problem, expected = "absent", "the absent member"
        place = _INDEX.sub("/*", pointer)
        yield breach_of(
            "SIG-DAEMON-001", "other shape", call, received=received, member=member, problem=problem, expected=expected,
            pointer=pointer, place=place,
        )  # fmt: skip


def refusal_says_why(recording: Recording) -> Iterator[Outcome]:
    """A refusal is a JSON object that says why."""
    for call in whole_answers(recording):
        if not call.served or not call.is_answered(400, 500) or call.method == "HEAD":
            continue
        why = call.answer_value("error")
        if call.operation == _MCP:
            # JSON-RPC says why inside an object.
            why = object_in(why).get("message", why)
        elif call.operation in _MEMORY_CHANGES:
            why = why or call.answer_value("status")
        pointer = "/response/body" if call.answer is None else in_answer("error")
        yield pass_if(text_or_none(why) is not None) or breach_of(
            "SIG-DAEMON-002", "no reason", call, received=_body(call), pointer=pointer
        )


def private_row_stays_private(recording: Recording) -> Iterator[Outcome]:
    """A private memory is not shown to another agent."""
    if not any(call.body.get("visibility") == "private" for call in recording.of(*facts.SAVES)):
        return
    recording = recording.whole
    owners: dict[str, Call] = {}
    for call in whole_answers(recording):
        if not call.accepted:
            continue
        if call.operation in facts.SAVES and call.body.get("visibility") == "private":
            if (identifier := text_in(call.answer_value("id"))) and not call.answer_value("deduped"):
                owners[identifier] = call
        elif call.operation in (facts.GET, facts.RECALL, facts.HOOK_RECALL):
            rows = [call.answer] if call.operation == facts.GET else call.answer_value("results")
            for name in (text_in(row.get("id")) for row in objects_in(rows)):
                save = owners.get(name)
                if save is None:
                    continue
                place = "id" if call.operation == facts.GET else "results"
                yield pass_if(save.agent == call.agent) or breach_of(
                    "SIG-DAEMON-006", "shown to another", call, save, received=name, save=save, place=place
                )


def memory_is_the_one_asked_for(recording: Recording) -> Iterator[Outcome]:
    """A GET of one memory is answered with that memory, or with 404."""
    for call in whole_answers(recording):
        if call.operation != facts.GET or not call.accepted or call.memory_id == "stats":
            continue
        answered = call.answer_value("id")
        is_same = text_in(answered).lower().startswith(call.memory_id.strip().lower())
        yield pass_if(is_same) or breach_of("SIG-DAEMON-007", "another memory", call, received=answered)


def health_names_the_version(recording: Recording) -> Iterator[Outcome]:
    """/health names the daemon's version."""
    for call in whole_answers(recording):
        if call.operation != facts.HEALTH or call.status != 200:
            continue
        version = call.answer_value("version")
        pointer = "/response/body" if call.answer is None else in_answer("version")
        yield pass_if(isinstance(version, str) and _VERSION.match(version)) or breach_of(
            "SIG-DAEMON-008", "no version", call, received=version, pointer=pointer
        )


def secret_is_not_shown(recording: Recording) -> Iterator[Outcome]:
    """No answer shows the value of a secret."""
    canaries = recording.declared.planted
    if not canaries:
        return
    for call in whole_answers(recording):
        text = json.dumps(_body(call), ensure_ascii=False)
        leak = next((token for token in canaries if token and token in text), "")
        yield pass_if(not leak) or breach_of("SIG-DAEMON-009", "shown", call, received=leak, secret=canaries[leak])


def every_patch_is_answered(recording: Recording) -> Iterator[Outcome]:
    """memory/modify answers every patch, in their order."""
    for call in whole_answers(recording):
        patches = call.body.get("patches")
        if call.operation != facts.MODIFY or not call.accepted or not isinstance(patches, list):
            continue
        asked_ids = [text_or_none(object_in(patch).get("id")) for patch in patches]
        answered_ids = [row.get("id") for row in objects_in(call.answer_value("results"))]
        match = all(answered in (None, wanted) for wanted, answered in zip(asked_ids, answered_ids, strict=False))
        yield pass_if(match and len(answered_ids) == len(asked_ids)) or breach_of(
            "SIG-DAEMON-012", "other results", call, received=answered_ids, count=len(asked_ids)
        )


CLAIM_S = 4 * 3600.0
TOMBSTONE_S = 30 * 60.0


class _Claims:
    """The claims on sessions that certainly hold at a call, with the calls that made them.

    Whatever may have ended a claim drops it: an end, a restart, a lost exchange, a bypass.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._claims: dict[str, dict[str, tuple[Call, Call]]] = {}
        self._claiming = (facts.START, facts.PROMPT) if recording.at_least("0.109") else (facts.START,)

    def claim_at(self, call: Call) -> Call | None:
        """The call that claimed the session of `call`, if that claim certainly still holds."""
        claim = self._claims.get(str(call.key), {}).get(call.agent)
        if claim is None:
            return None
        first, last = claim
        if call.t0 - last.t1 > CLAIM_S or was_interrupted(self._recording, first, call):
            return None
        return first

    def record(self, call: Call) -> None:
        """Take a call into account, after it was judged."""
        if call.key is None or call.operation not in facts.LIFECYCLE:
            return
        if call.operation == facts.END or not is_own_answer(call) or call.answer_value("bypassed"):
            # An end whose answer was lost may have arrived, as may anything else.
            self._claims.pop(call.key, None)
        elif call.operation in self._claiming and call.accepted and not call.answer_value("skipped"):
            claims = self._claims.setdefault(call.key, {})
            first, _ = claims.get(call.agent, (call, call))
            if call.runtime_path is not None and first.runtime_path == call.runtime_path:
                claims[call.agent] = (first, call)


def conflict_is_reported(recording: Recording) -> Iterator[Outcome]:
    """A hook on another runtime path than the one that claimed the session is answered as a conflict."""
    claims = _Claims(recording)
    skips = recording.at_least("0.109")
    for call in recording.of(*facts.LIFECYCLE, *facts.CLAIM_CHECKING):
        # Before 0.109, an end is accepted whoever holds the session.
        due = is_served(call) and None not in (call.key, call.runtime_path) and (skips or call.operation != facts.END)
        owner = claims.claim_at(call) if due else None
        if owner is not None and owner.runtime_path != call.runtime_path:
            is_error = call.operation == facts.START or call.operation in facts.CLAIM_CHECKING or not skips
            is_skipped = all(call.answer_value(name) is True for name in ("skipped", "duplicateRuntimePath"))
            names_owner = call.answer_value("claimedBy") == owner.runtime_path
            conforms = call.status == 409 if is_error else call.status == 200 and is_skipped and names_owner
            wanted = "409" if is_error else f"200 skipped, claimedBy {owner.runtime_path}"
            yield pass_if(conforms) or lost_state(
                recording, "SIG-DAEMON-003", "accepted", call, owner, received=call.status, owner=owner, wanted=wanted
            )
        claims.record(call)


def repeated_start_gets_the_stub(recording: Recording) -> Iterator[Outcome]:
    """A repeated start of an open session is answered with the stub."""
    for hooks in recording.hooks_of.values():
        full: Call | None = None
        for call in hooks:
            if not call.accepted or not is_served(call) or call.operation in (facts.END, facts.COMPLETE):
                full = None
                continue
            if call.answer_value("sessionKnown") is False:
                full = None
            if call.operation != facts.START:
                continue
            claims_only = call.body.get("claimOnly") is True and recording.at_least(CLAIM_ONLY_SINCE)
            if call.answer_value("skipped") or claims_only:
                continue
            if (
                full is None
                or dedupe_key(full) != dedupe_key(call)
                or call.body.get("source") == "clear"
                or was_interrupted(recording, full, call)
            ):
                full = None if call.is_stub else call
            else:
                inject = str(call.answer_value("inject"))[:80]
                yield pass_if(call.is_stub) or lost_state(
                    recording, "SIG-DAEMON-004", "whole context", call, full, received=inject
                )


def second_end_is_dropped(recording: Recording) -> Iterator[Outcome]:
    """A second end within thirty minutes is dropped, and the answer says so."""
    for hooks in recording.hooks_of.values():
        for before, call in pairwise(hooks):
            if not (before.operation == call.operation == facts.END and is_served(before) and is_served(call)):
                continue
            if before.runtime_path is None or (before.runtime_path, before.agent) != (call.runtime_path, call.agent):
                continue
            if before.answer_value("skipped") or call.t0 - before.t1 > TOMBSTONE_S:
                continue
            if was_interrupted(recording, before, call):
                continue
            is_dropped = all(call.answer_value(name) is True for name in ("skipped", "duplicateSessionEnd"))
            yield pass_if(is_dropped) or lost_state(
                recording, "SIG-DAEMON-005", "second end", call, before, received=dict(call.answer or {})
            )


def job_can_be_looked_up(recording: Recording) -> Iterator[Outcome]:
    """A job that was accepted can be looked up."""
    if not recording.of(facts.EXEC, cut=True):
        return
    recording = recording.whole
    jobs: dict[str, Call] = {}
    for call in whole_answers(recording):
        if call.operation == facts.EXEC and call.status == 202:
            jobs[str(call.answer_value("id"))] = call
        elif call.operation == facts.EXEC_JOB:
            identifier = call.path.rsplit("/", 1)[-1]
            job = jobs.get(identifier)
            if job is None or call.status in (401, 403, 429):
                continue
            if call.status == 200 and call.answer_value("id") == identifier:
                yield PASS
            elif was_interrupted(recording, job, call):
                yield undecided(call, message="the daemon may have been restarted since it accepted the job")
            else:
                yield lost_state(
                    recording, "SIG-DAEMON-010", "lost job", call, job, received=call.status, id=identifier
                )


def started_session_is_known(recording: Recording) -> Iterator[Outcome]:
    """The answer to a prompt of a started session says sessionKnown: true."""
    claims = _Claims(recording)
    for call in recording.hooks:
        if call.operation == facts.PROMPT and call.accepted and is_served(call):
            owner = claims.claim_at(call) if call.key is not None else None
            if owner is not None and owner.runtime_path == call.runtime_path and not call.answer_value("skipped"):
                is_known = call.answer_value("sessionKnown") is not False
                yield pass_if(is_known) or lost_state(recording, "SIG-DAEMON-011", "unknown session", call, owner)
        claims.record(call)
