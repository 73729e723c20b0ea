"""Requirements on the fields of one request: JSON Schema fragments of the catalogue decide them.

The fast engine decides; `jsonschema` is asked only for a breach, to say where and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema_rs

from signet_conformance.contract import Check, checks
from signet_conformance.facts import Call, Recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.outcome import PASS, Outcome, Rule, undecided

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def _decider(requirement: str, part: str) -> Any:
    schema = getattr(checks()[requirement], part)
    return jsonschema_rs.validator_for({"$schema": _DIALECT, **schema})


def explain(schema: Mapping[str, Any], document: object) -> tuple[tuple[str | int, ...], str, object]:
    """Where a document breaks a schema, the keyword's message, and the value found there."""
    import jsonschema
    from jsonschema.exceptions import best_match

    error = best_match(jsonschema.Draft202012Validator(dict(schema)).iter_errors(document))
    path: tuple[str | int, ...] = tuple(error.absolute_path)
    # An alternative that failed says little as a whole: its first requirement names the member that is missing.
    while error.validator in ("anyOf", "oneOf") and error.context:
        error = error.context[0]
        path = tuple(error.absolute_path)
    if error.validator == "required":
        missing = next((name for name in error.validator_value if name not in error.instance), None)
        if missing is not None:
            return (*path, missing), "absent", None
    return path, error.message, error.instance


def check_fields(requirement: str) -> Rule:
    """The rule that judges a requirement by its entry in schemas/checks.json."""
    check = checks()[requirement]

    def rule(recording: Recording) -> Iterator[Outcome]:
        parts = [(part, Verdict.FAIL if part == "must" else Verdict.WARN) for part in ("must", "should")]
        deciders = [(_decider(requirement, p), v, p) for p, v in parts if getattr(check, p) is not None]
        applies = _decider(requirement, "when") if check.when is not None else None
        for call in recording.of(*check.operations, cut=check.accepted_when_cut):
            if call.cut:
                yield PASS if call.accepted else undecided(call, message="the body was recorded in part only")
                continue
            body = call.body
            if applies is not None and not applies.is_valid(body):
                continue
            for decider, verdict, part in deciders:
                if not decider.is_valid(body):
                    yield _breach(check, part, verdict, call)
                    break
            else:
                yield PASS

    return rule


def _breach(check: Check, part: str, verdict: Verdict, call: Call) -> Finding:
    path, why, received = explain(getattr(check, part), dict(call.body))
    name = ".".join(str(p) for p in path) or "the body"
    problem = f"{name} is absent" if why == "absent" else f"{name} is not as required: {why[:200]}"
    pointer = "/request/body/json" + "".join(f"/{p}" for p in path)
    return Finding(
        verdict=verdict,
        exchanges=(call.seq,),
        message=problem,
        pointer=pointer,
        expected=check.expected,
        received=received,
        fold=f"{call.operation}{'/'.join('*' if isinstance(p, int) else str(p) for p in path)}",
    )
