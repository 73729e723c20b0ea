"""Judges the step of a tool that forgets memories: it forgets or previews those that it was given, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from signet_conformance.facts import DELETE, FORGET, Call
from signet_conformance.files.json_values import objects_in
from signet_conformance.rules.outcome import PASS, Outcome, in_body
from signet_conformance.rules.tool_requests import (
    CHANGES,
    AskedStep,
    EarlierSteps,
    asked_ids,
    identifier_in,
    ids_forgotten,
    is_executed,
    is_value,
    list_some,
)

_FILTERS = ("query", "type", "tags", "who", "since", "until")
"""Members by which a forget chooses memories if it names none."""
_DEFAULT_LIMIT = 20
"""The number of memories that the daemon forgets by filters if a request names no limit."""


def judge_forget(step: AskedStep, past: EarlierSteps) -> Outcome | None:
    """The outcome of a step; None if it cannot be judged."""
    asked = asked_ids(step.given)
    mode = step.given.get("mode")
    executed = [call for call in step.calls if call.accepted and (ids_forgotten(call) or is_executed(call))]
    changing = next((call for call in step.calls if call.operation in CHANGES and past.unasked_ids(call)), None)
    if changing is not None:
        return step.breach("changed instead of forgotten", changing, tool=step.mark.tool)
    if mode == "preview":
        if all(ids_forgotten(call) and ids_forgotten(call) <= past.forgets for call in executed):
            return _preview_of_others(step, asked) or PASS
        return step.breach("forgets", executed[0], received=_mode_of(executed[0]))
    if not executed:
        return _judge_previews(step, asked)
    if asked:
        return _judge_forgotten_ids(step, asked, executed, past)
    return _judge_forgotten_by_filter(step, executed, past)


def _judge_previews(step: AskedStep, asked: set[str]) -> Outcome | None:
    """The outcome of a step that forgets nothing: only a preview took place."""
    previews = [call for call in step.calls if call.operation == FORGET and call.accepted]
    if not previews:
        return None
    if any(call.answer_value("requiresConfirm") is True for call in previews):
        return step.undecided(previews[0], "the daemon requires confirmation for this number of memories")
    if step.given.get("mode") is None and asked:
        return step.undecided(previews[0], "a preview, and no mode was asked for")
    if step.given.get("mode") is None or not any(map(_candidates_of, previews)):
        return _preview_of_others(step, asked) or PASS
    if not step.undisturbed:
        return None
    return step.breach("only a preview", previews[0], received=_mode_of(previews[0]), mode=step.given["mode"])


def _preview_of_others(step: AskedStep, asked: set[str]) -> Outcome | None:
    """The breach of a preview that shows other memories than the tool was given; the connector may show more."""
    previews = [call for call in step.calls if call.operation == FORGET and not is_executed(call)]
    if not previews or not step.undisturbed:
        return None
    first = previews[0]
    if asked:
        missing = asked.difference(*(asked_ids(call.body) for call in previews))
        if not missing:
            return None
        return step.breach("preview of others", first, count=len(missing), ids=list_some(missing))
    filters = _filters_in(step.given)
    others = [other for call in previews if (other := _other_filter(call, filters)) is not None]
    if len(others) < len(previews):
        return None
    name = others[0]
    return step.breach("preview of another", first, name=name, wanted=filters[name])


def _filters_in(members: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: members[name] for name in _FILTERS if members.get(name)}


def _other_filter(call: Call, wanted: Mapping[str, Any]) -> str | None:
    """The first filter that a request does not have as requested."""
    return next((name for name, value in wanted.items() if not is_value(call.body.get(name), value)), None)


def _judge_forgotten_ids(step: AskedStep, asked: set[str], executed: Sequence[Call], past: EarlierSteps) -> Outcome:
    for call in executed:
        ids = ids_forgotten(call)
        if not ids:
            filters = _filters_in(call.body)
            names = ", ".join(filters) or "no selection"
            return step.breach("by filter", call, received=filters, filters=names, ids=list_some(asked))
        if others := ids - asked - past.forgets:
            place, sent = _place_of_ids(call), list_some(others)
            return step.breach("forgets another", call, received=sent, place=place, ids=list_some(asked))
    missing = asked.difference(*map(ids_forgotten, step.calls))
    return step.missing(sorted(missing)) if missing else PASS


def _judge_forgotten_by_filter(step: AskedStep, executed: Sequence[Call], past: EarlierSteps) -> Outcome:
    asked = _filters_in(step.given)
    if not asked:
        return step.undecided(executed[0], "the tool was given neither ids nor a selection")
    for call in executed:
        ids = ids_forgotten(call)
        if not ids:
            other = _other_filter(call, asked)
            if other is not None:
                return step.breach("other filter", call, name=other, wanted=asked[other])
            if (most := step.given.get("limit")) and _limit_of(call) > _number(most):
                return step.breach("limit", call, most=most)
        elif ids - past.forgets - _ids_of_previews(step, asked):
            place, names = _place_of_ids(call), ", ".join(asked)
            wanted = ", ".join(f"{name} {value!r}" for name, value in asked.items())
            return step.breach("found", call, received=list_some(ids), place=place, names=names, wanted=wanted)
    return PASS


def _place_of_ids(forget: Call) -> str:
    return "/request/path" if forget.operation == DELETE else in_body("ids")


def _limit_of(forget: Call) -> float:
    limit = forget.body.get("limit")
    return _DEFAULT_LIMIT if limit is None else _number(limit)


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return inf


def _ids_of_previews(step: AskedStep, asked: Mapping[str, Any]) -> set[str]:
    """The ids in the answer to a preview of the same choice."""
    same = (call for call in step.calls if all(is_value(call.body.get(name), asked[name]) for name in asked))
    return {identifier for call in same for identifier in _candidates_of(call)}


def _candidates_of(preview: Call) -> set[str]:
    """The ids of the memories in the answer to a preview."""
    return {identifier_in(row.get("id")) for row in objects_in(preview.answer_value("candidates"))}


def _mode_of(call: Call) -> object:
    return call.body.get("mode", f"{call.method} {call.path}")
