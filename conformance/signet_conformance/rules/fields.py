"""Requirements on the fields of one request: the JSON Schema fragments of their entries decide them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import jsonschema_rs

from signet_conformance.contract import Check, requirements
from signet_conformance.facts import Call, Recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.outcome import PASS, Outcome, Rule, in_body, judge_cut

MOST_EXPLAINED = 200
"""How many breaches of one requirement are explained: the engine keeps no more, and explaining is slow."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _validator(schema: Mapping[str, Any] | None) -> Any:
    return None if schema is None else jsonschema_rs.validator_for({"$schema": _DIALECT, **schema})


class _ActiveCheck:
    """A check as it is in force at one daemon version, its schemas compiled."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.applies = _validator(check.when)
        parts = ((check.must, Verdict.FAIL), (check.should, Verdict.WARN))
        self.parts = [(_validator(schema), schema, verdict) for schema, verdict in parts if schema is not None]


def is_valid(validator: Any, document: object) -> bool:
    """Whether a document fits the schema of a validator of jsonschema_rs."""
    try:
        return bool(validator.is_valid(document))
    except UnicodeEncodeError:
        # JavaScript cuts text in the middle of an emoji; the fast engine takes no lone surrogate.
        return bool(validator.is_valid(_whole_characters(document)))


def _whole_characters(document: object) -> Any:
    """A document with a question mark for each half of a character."""
    return json.loads(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))


def explain(validator: Any, schema: Mapping[str, Any], document: object) -> tuple[tuple[str | int, ...], str, object]:
    """Where a document breaks a schema, the keyword's message, and the value found there.

    `validator` is that of jsonschema_rs for the schema: compiling one takes longer than explaining a breach.
    """
    readable = document
    try:
        errors = list(validator.iter_errors(document))
    except UnicodeEncodeError:
        readable = _whole_characters(document)
        errors = list(validator.iter_errors(readable))
    error = _best(errors, schema, readable)
    if error is None:
        # Another engine may have found the breach: a few characters are white space to only one of them.
        return (), "it does not match the schema", None
    path = tuple(error.instance_path)
    if error.kind.name == "required":
        return (*path, error.kind.as_dict()["property"]), "absent", None
    received = _at(document, path)
    return path, error.message, _at(readable, path) if received is None else received


def _best(errors: Sequence[Any], schema: Mapping[str, Any], document: object) -> Any:
    """The most useful error: the highest in the document, and the nearest miss if all alternatives fail.

    If alternatives miss equally, it is the first error of the first one.
    """

    def usefulness(error: Any) -> tuple[Any, ...]:
        # A member that is not allowed is a surplus of its object, and counts as an error of the object.
        within = error.instance_path[:-1] if error.kind.name == "falseSchema" else error.instance_path
        path = [(isinstance(part, str), part) for part in within]
        of_type = _is_of_type(_at(document, error.instance_path), _at(schema, [*error.schema_path[:-1], "type"]))
        return -len(path), path, not _misses(error), not of_type

    best = max(errors, key=usefulness, default=None)
    alike = False
    while best is not None and (misses := _misses(best)):
        nearest = sorted(misses, key=usefulness)
        alike = alike or (len(nearest) > 1 and usefulness(nearest[0]) == usefulness(nearest[1]))
        best = misses[0] if alike else nearest[0]
    return best


def _misses(error: Any) -> list[Any]:
    """The errors of all alternatives, if none fits; empty for another keyword."""
    return [miss for alternative in getattr(error.kind, "context", ()) for miss in alternative]


def _at(value: Any, path: Iterable[str | int]) -> Any:
    """The value at a path in a document or schema, or None if nothing is there."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _is_of_type(value: object, types: Any) -> bool:
    return bool(types) and jsonschema_rs.is_valid({"type": types}, value)


@cache
def check_fields(requirement: str) -> Rule:
    """The rule that the `check` of a requirement's entry describes. Raises ValueError for an entry without one."""
    entry = requirements()[requirement]
    operations, check = entry.operations, entry.check
    if check is None:
        raise ValueError(f"{requirement} has no check")

    @cache
    def in_force(daemon_version: str) -> _ActiveCheck:
        return _ActiveCheck(check.at(daemon_version))

    def rule(recording: Recording) -> Iterator[Outcome]:
        active = in_force(recording.daemon_version)
        breaches = 0
        for call in recording.of(*operations, cut=check.accepted_when_cut):
            if call.cut:
                yield judge_cut(call)
                continue
            body = call.body if isinstance(call.body, dict) else dict(call.body)
            if active.applies is not None and not is_valid(active.applies, body):
                continue
            for validator, schema, verdict in active.parts:
                if not is_valid(validator, body):
                    breaches += 1
                    yield _breach(active.check, validator, schema, verdict, call, explained=breaches <= MOST_EXPLAINED)
                    break
            else:
                yield PASS

    rule.__doc__ = f"{entry.title}."
    return rule


def _breach(
    check: Check, validator: Any, schema: Mapping[str, Any], verdict: Verdict, call: Call, *, explained: bool
) -> Finding:
    if not explained:
        return Finding(verdict, (call.seq,), "not as required", in_body(), check.expected, fold=str(call.operation))
    path, why, received = explain(validator, schema, dict(call.body))
    name = ".".join(str(p) for p in path) or "the body"
    problem = f"{name} is absent" if why == "absent" else f"{name} is not as required: {why[:200]}"
    return Finding(
        verdict=verdict,
        exchanges=(call.seq,),
        message=problem,
        pointer=in_body(*path),
        expected=check.expected,
        received=received,
        fold="/".join((str(call.operation), *("*" if isinstance(p, int) else str(p) for p in path))),
    )
