"""The requirement on search tools: they ask the daemon for what the model asked them for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from signet_conformance import facts
from signet_conformance.contract import contract_version_of, request_members, spelling
from signet_conformance.facts import Call, Recording, plain
from signet_conformance.files.json_values import text_in
from signet_conformance.finding import Finding
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, in_body, undecided
from signet_conformance.rules.tool_requests import NO_ARGUMENTS, identifier_in, is_value, requests_of
from signet_conformance.trace.marks import StepMark

LIMITS = (1, 100)
"""How many rows a recall may ask for."""
_DEFAULT = 10
"""How many rows the answer to a recall has if it asks for no number."""
_SEARCHES = frozenset({facts.RECALL, facts.HOOK_RECALL, facts.MEMORY_SEARCH})
_OPERATIONS_OF: Mapping[str, frozenset[str]] = {
    "memory_search": _SEARCHES,
    "memory_recall": _SEARCHES,
    "session_search": frozenset({facts.SEARCH_SESSIONS}),
    "memory_get": frozenset({facts.GET}),
}
"""Tool to the operations by which it may search."""
_NAMES = {"q": "query", "k": "limit", "topk": "limit"}
"""Other names of a member, in the spelling of `_name`."""
_OWN = frozenset({"agentid", "sessionkey", "project", "harness"})
"""Members that the connector knows better than the model."""


def search_is_what_was_asked(recording: Recording) -> Iterator[Outcome]:
    """A tool that searches memories asks the daemon for what the model asked it for."""
    for mark in recording.timeline.steps:
        operations = _OPERATIONS_OF.get(str(mark.tool))
        if operations is None or recording.timeline.was_skipped(mark):
            continue
        calls = [call for call in requests_of(recording, mark) if call.operation in operations and not call.cut]
        # The daemon is asked even for an id that it does not know.
        answered_calls = [call for call in calls if call.accepted or (call.operation == facts.GET and call.delivered)]
        given = mark.arguments
        if not calls and given and (other := _searched_instead(recording, mark, given)):
            yield other
        elif answered_calls and given is None:
            yield undecided(answered_calls[0], message=f"step {mark.index}: {NO_ARGUMENTS}")
        elif answered_calls and given is not None:
            wrong = [_other_member(recording, mark, given, call) for call in answered_calls]
            yield PASS if None in wrong else wrong[0] or PASS


def _searched_instead(recording: Recording, mark: StepMark, given: Mapping[str, Any]) -> Finding | None:
    """The breach of a tool that searches for the text of an id, and never reads the memory with that id."""
    wanted = identifier_in(given.get("id"))
    for call in requests_of(recording, mark) if wanted else ():
        if call.operation in _SEARCHES and call.accepted and wanted in text_in(_sent_members(call).get("query")):
            return breach_of("SIG-REC-005", "searched", call, mark=mark, wanted=wanted)
    return None


def _other_member(recording: Recording, mark: StepMark, given: Mapping[str, Any], call: Call) -> Finding | None:
    if call.operation == facts.GET:
        wanted = identifier_in(given.get("id"))
        if not wanted or wanted == identifier_in(call.memory_id):
            return None
        return breach_of("SIG-REC-005", "other id", call, mark=mark, wanted=wanted)
    sent = _read_members(recording, call)
    unclear: Finding | None = None
    for name, wanted in given.items():
        if _name(name) in _OWN or wanted in (None, False, "", [], {}):
            continue
        value = sent.get(_name(name))
        if _is_as_wanted(_name(name), value, wanted, [*sent.values()]):
            continue
        if (why := _unclear_member(recording, name, value, wanted)) is not None:
            unclear = undecided(call, message=f"step {mark.index}: {why}")
            continue
        sent_as = next((each for each in (*call.query, *call.body) if _name(each) == _name(name)), name)
        breach = "unread member" if _sent_members(call).get(_name(name)) is not None else "missing member"
        return breach_of(
            "SIG-REC-005",
            breach if value is None else "other member",
            call,
            received=value,
            mark=mark,
            name=name,
            code=_name(name),
            wanted=wanted,
            sent_as=sent_as,
            place="/request/query" if sent_as in call.query else in_body(sent_as),
        )
    return unclear


def _unclear_member(recording: Recording, name: str, value: object, wanted: object) -> str | None:
    """Why a missing or different member may still be as asked; None if it is not."""
    if _name(name) == "limit" and _may_be_the_most(value, wanted):
        return "a lower limit, which may be the most that the tool takes"
    if facts.REDACTION in f"{value}{wanted}":
        return f"{name} was redacted"
    if value is None and _name(name) not in _known_names(recording):
        return f"{name} is the tool's own member, and no search of the contract has it"
    return None


def _may_be_the_most(sent: object, wanted: object) -> bool:
    """Whether a limit may have been cut to the maximum of the tool's schema, which no mark shows."""
    try:
        return _DEFAULT < float(str(sent)) < float(str(wanted))
    except ValueError:
        return False


def _sent_members(call: Call) -> Mapping[str, Any]:
    return {_name(name): value for name, value in {**call.query, **call.body}.items()}


def _read_members(recording: Recording, call: Call) -> Mapping[str, Any]:
    """The sent members, without those that the daemon reads only under another spelling."""
    names = request_members(contract_version_of(recording.daemon_version), str(call.operation))
    known = {spelling(name) for name in names}
    sent = {**call.query, **call.body}
    return {_name(name): value for name, value in sent.items() if name in names or spelling(name) not in known}


def _known_names(recording: Recording) -> frozenset[str]:
    """The members that any search of the contract has; others may be for the tool itself, such as a form of output."""
    version = contract_version_of(recording.daemon_version)
    operations = frozenset().union(*_OPERATIONS_OF.values())
    return frozenset(_name(name) for each in operations for name in request_members(version, each))


def _name(name: str) -> str:
    """A member's name however it is spelt: `aggregate_budget` and `aggregateBudget` are one."""
    return _NAMES.get(spelling(name), spelling(name))


def _is_as_wanted(name: str, sent: object, wanted: Any, others: Sequence[object]) -> bool:
    if name == "query":
        return plain(f"{wanted}") in plain(text_in(sent))
    if name == "limit" and isinstance(wanted, int | float):
        least, most = LIMITS
        return is_value(sent, wanted) or is_value(sent, min(max(wanted, least), most))
    if isinstance(wanted, dict):
        return isinstance(sent, dict) and all(is_value(sent.get(each), value) for each, value in wanted.items())
    # The tool may name it differently than the daemon.
    return is_value(sent, wanted) or (
        sent is None and isinstance(wanted, str) and any(is_value(other, wanted) for other in others)
    )
