"""Turns the short notation of a case into a trace, by way of a real file: what is judged was read.

A case's items are numbered from 1 in their order, marks included; an exchange begins at the second of
its number and takes a hundredth. A request body is bare JSON (absent or null: none was sent),
`raw_body` is a body as trace lines write it. A response that is absent is a 200 with `{}`; null: no answer. An item
whose `side` is `model` stands in the recording of the harness's model, which then lies beside with the same marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from signet_conformance.trace import FORMAT, Trace, encode, read

DECLARED: Mapping[str, Any] = {
    "agents": ["atlas-agent"],
    "harness": "openclaw",
    "bounds_s": {"start": 15, "prompt": 5},
}
JSON_TYPE = "application/json"
KEYED: Mapping[str, Any] = {
    "harness": "openclaw",
    "sessionKey": "s-41c7",
    "agentId": "atlas-agent",
    "runtimePath": "plugin",
    "project": "/srv/atlas",
}
"""What the body of a hook says of its session."""


def build(
    file: Path, items: Iterable[Mapping[str, Any]], header: Mapping[str, Any] | None = None, *, shared: bool = True
) -> Trace:
    """The trace of a case, written to `file` and read back; `header` overrides single header fields.

    The fast parser makes one object of equal short strings. Unless they may be `shared`, each line has half an emoji in
    a member that nobody reads, which only the other parser takes: then a rule that asks for identity is found out.
    """
    numbered = list(enumerate(items, start=1))
    half = {} if shared else {"x-half": "\ud83d"}
    head = {"kind": "header", "format": FORMAT, "declared": dict(DECLARED), **(header or {})}
    beside = file.with_suffix(".model.jsonl")
    # The case before may have had one.
    beside.unlink(missing_ok=True)
    if any("side" in item for _, item in numbered):
        head["clock_s"] = 100.0
        _write(beside, {**head, "side": "model"}, numbered, half, side="model")
    _write(file, head, numbered, half)
    return read(file)


def _write(
    file: Path,
    head: Mapping[str, Any],
    numbered: Iterable[tuple[int, Mapping[str, Any]]],
    half: Mapping[str, str],
    side: str | None = None,
) -> None:
    """Write the marks and the exchanges of one side."""
    lines = [dict(head)]
    for n, item in numbered:
        if "mark" in item:
            lines.append(_mark(n, item))
        elif item.get("side") == side:
            lines.append(_exchange(n, item))
    file.write_bytes(b"".join(encode({**line, **half}) for line in lines))


def _mark(number: int, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "mark", "seq": number, "t": number, "name": item["mark"], "data": item["data"]}


def _exchange(number: int, item: Mapping[str, Any]) -> dict[str, Any]:
    request = item["request"]
    line: dict[str, Any] = {
        "kind": "exchange",
        "seq": number,
        "conn": 1,
        "t0": item.get("t0", number),
        "t1": item.get("t1", item.get("t0", number) + 0.01),
        "request": {
            "method": request["method"],
            "path": request["path"],
            "query": _pairs(request.get("query", {})),
            "headers": _pairs(request.get("headers", {})),
            "body": _body(request),
        },
        "response": None,
    }
    if "incomplete" in request:
        line["request"]["incomplete"] = request["incomplete"]
    if line["request"]["body"] is not None and "content-type" not in request.get("headers", {}):
        line["request"]["headers"].append(["content-type", JSON_TYPE])
    response = item.get("response", {"status": 200, "body": {}})
    if response is not None:
        line["response"] = {
            "status": response["status"],
            "headers": [["content-type", JSON_TYPE], *_pairs(response.get("headers", {}))],
            "body": _body(response),
        }
    for name in ("error", "fault"):
        if name in item:
            line[name] = item[name]
    return line


def _body(message: Mapping[str, Any]) -> Any:
    if "raw_body" in message:
        return message["raw_body"]
    body = message.get("body")
    return None if body is None else {"json": body}


def _pairs(values: Mapping[str, str | None] | list[list[str]]) -> list[list[str]]:
    """Name-value pairs; a list is taken as it is (repeats, order), a value of null is left out."""
    if isinstance(values, list):
        return values
    return [[name, value] for name, value in values.items() if value is not None]
