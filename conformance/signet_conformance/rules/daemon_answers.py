"""Requirements on single answers of the daemon: shape, reasons, rows, secrets; and findings on the daemon's side."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import jsonschema_rs

from signet_conformance import facts
from signet_conformance.contract import contract_version_of, document, reference_daemon, version_document, version_key
from signet_conformance.facts import Call, Recording, once_a_recording, text_or_none
from signet_conformance.files.json_values import object_in, objects_in, pointer as pointer_of, text_in
from signet_conformance.finding import Finding
from signet_conformance.rules.fields import explain, is_valid
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_if, undecided
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
    """An answer of success has the shape that the contract gives its operation."""
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
        is_it = text_in(answered).lower().startswith(call.memory_id.strip().lower())
        yield pass_if(is_it) or breach_of("SIG-DAEMON-007", "another memory", call, received=answered)


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
