"""The schemas against reality: answers of a real daemon, recordings of real connectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from signet_conformance.probing.replay import answers_file
from tests.support.evidence import EVIDENCE, TRACES, json_lines

CLIPPED = re.compile(r"\.\.\.\[")
LOOSER = {
    # The daemon refuses these for what they mean, not for their shape.
    "remember/critical-prefix-with-no-text",
    "remember/validUntil-before-validFrom",
}
UNAUTHENTICATED, NOT_FOUND, CONFLICT, TOO_LARGE = 401, 404, 409, 413


def unclipped(value: Any) -> Any:
    """A value of the truth table without the notes that stand for clipped list items."""
    if isinstance(value, list):
        return [unclipped(item) for item in value if not (isinstance(item, str) and CLIPPED.match(item))]
    if isinstance(value, dict):
        return {key: unclipped(item) for key, item in value.items()}
    return value


def probes() -> list[dict[str, Any]]:
    """The requests to a real daemon, with its answers."""
    return json_lines(answers_file("0.145.7"))


def trace_lines() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every line of the real recordings, with its file."""
    for path in sorted(TRACES.rglob("*.jsonl")):
        for number, line in enumerate(json_lines(path), 1):
            yield f"{path.relative_to(EVIDENCE)}:{number}", line


def operation_of(find_operation: Any, method: str, path: str) -> str | None:
    """The operation that a method and a path are."""
    try:
        return find_operation(method, path.partition("?")[0])
    except KeyError:
        return None


def test_answers_of_a_real_daemon_satisfy_the_schemas(schema: Any, find_operation: Any) -> None:
    """Every answer of the truth table to a call within the contract is one that the schemas describe."""
    checked = 0
    for probe in probes():
        operation = operation_of(find_operation, probe["request"]["method"], probe["request"]["path"])
        if operation is None or probe["request"]["method"] in ("HEAD", "OPTIONS"):
            continue
        answer = {"status": probe["status"], "body": unclipped(probe["response_body"])}
        schema(f"operations/{operation}/response.schema.json").demand(answer, probe["id"])
        checked += 1
    assert checked > 300


def test_a_body_that_a_real_daemon_refuses_is_refused(schema: Any, find_operation: Any) -> None:
    """What the daemon answers with an error for its shape, the request schema refuses too."""
    admitted = set()
    for probe in probes():
        operation = operation_of(find_operation, probe["request"]["method"], probe["request"]["path"])
        refused = probe["status"] >= 400 and probe["status"] not in (UNAUTHENTICATED, NOT_FOUND, CONFLICT, TOO_LARGE)
        if operation is not None and refused and "body" in probe["request"]:
            request = schema(f"operations/{operation}/request.schema.json")
            if request.admits(probe["request"]["body"]):
                admitted.add(probe["id"])
    assert admitted == LOOSER


def test_lines_of_real_traces_satisfy_the_trace_schema(schema: Any) -> None:
    """Every line of every recording is a header, an exchange or a mark as the trace schema describes."""
    lines = list(trace_lines())
    assert len(lines) > 400
    for where, line in lines:
        schema("trace/signet-trace-1.schema.json").demand(line, where)


def test_real_recordings_satisfy_the_schemas(schema: Any, load: Any, find_operation: Any) -> None:
    """Requests of real connectors and answers that no fault changed are what the schemas describe."""
    index = load("operations.json")["operations"]
    answers = 0
    for where, line in trace_lines():
        if line["kind"] != "exchange":
            continue
        request, response = line["request"], line["response"]
        operation = find_operation(request["method"], request["path"])
        body = request["body"] and request["body"]["json"]
        query = dict(request["query"])
        sent = body if index[operation]["request_in"] == "body" else {**query, **(body or {})}
        schema(index[operation]["request"]).demand(sent, where)
        if response is not None and "fault" not in line:
            answer = {"status": response["status"], "body": response["body"]["json"]}
            schema(index[operation]["response"]).demand(answer, where)
            answers += 1
    assert answers > 300
