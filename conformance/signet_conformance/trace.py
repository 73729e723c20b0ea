"""A trace is one header, then exchanges and marks: `signet-trace/1`, one JSON object a line.

Everything here is frozen and knows neither proxies nor rules. Times are seconds since the header's
`created`, from a monotonic clock. Nothing in a trace is trusted: lines are bounded, shapes are
checked, and every complaint names file, line and remedy.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_core import from_json

from signet_conformance.errors import TraceError, printable

FORMAT = "signet-trace/1"
MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 200
MAX_SECONDS = 1e15
_REMEDY_RECORD = "record it again with: signet-conformance record --upstream URL --out FILE"

JSONValue = Any
"""What a JSON parser returns: dict, list, str, int, float, bool or None."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a message carried. `kind` is `json`, `text`, `base64` or `cut` (kept in part only).

    `value` is the JSON value, the text, the base64 text, or what was kept of a cut body's text.
    `size` (bytes) and `sha256` are known for cut bodies.
    """

    kind: str
    value: JSONValue
    media_type: str | None = None
    size: int | None = None
    sha256: str | None = None

    @property
    def object(self) -> dict[str, JSONValue] | None:
        """The JSON object this body is, or None. Text that parses as an object is one: the daemon parses too."""
        if self.kind == "json":
            return self.value if isinstance(self.value, dict) else None
        if self.kind == "text" and self.value.lstrip("\ufeff \t\r\n").startswith("{"):
            try:
                # The same reader as for lines: half an emoji is read, a body nested too deep is none.
                parsed = _decode(self.value.lstrip("\ufeff").encode("utf-8", "surrogatepass"))
            except _BrokenLineError:
                return None
            return parsed if isinstance(parsed, dict) else None
        return None


@dataclass(frozen=True, slots=True)
class Message:
    """What a request and a response share: headers as sent (in order, repeats kept) and a body."""

    headers: Sequence[Sequence[str]]
    body: Body | None

    def header(self, name: str) -> str | None:
        """The first value of a header, by its lower-case `name`; None when it was not sent."""
        for pair in self.headers:
            if pair[0].lower() == name:
                return pair[1]
        return None


@dataclass(frozen=True, slots=True)
class Request(Message):
    """One request: method in upper case, path without query, query as ordered pairs."""

    method: str
    path: str
    query: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Response(Message):
    """One response: its status and what it carried."""

    status: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded request with its response, or with the reason why there is none.

    `error` is `upstream_refused`, `upstream_reset`, `upstream_timeout`, `client_closed`, `fault` or None;
    `fault` is the fault that changed or answered the exchange. `line` is its place in the file.
    """

    seq: int
    conn: int | None
    t0: float
    t1: float
    request: Request
    response: Response | None
    error: str | None
    fault: Mapping[str, JSONValue] | None
    line: int
    raw: bytes = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Mark:
    """A line written by the kit: a step was given to the connector, a fault was switched on."""

    seq: int
    t: float
    name: str
    data: Mapping[str, JSONValue]
    line: int


@dataclass(frozen=True, slots=True)
class Declared:
    """What the target says of itself and a trace cannot show. None means: not declared."""

    agents: tuple[str, ...] = ()
    harness: str | None = None
    bounds_s: Mapping[str, float] = field(default_factory=dict)
    capabilities: tuple[str, ...] | None = None
    token: bool = False
    canaries: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Mapping[str, JSONValue], where: str = "declared") -> Declared:
        """Read the header's `declared` object; raise TraceError naming the member that is off."""

        def bad(member: str, expected: str) -> TraceError:
            return TraceError(
                f"declared.{member} is {printable(json.dumps(data.get(member), default=str))}, expected {expected}",
                where=where,
                remedy="mend the header line, or pass --agent, --harness and --bound instead",
            )

        agents = data.get("agents") or []
        if not isinstance(agents, list) or not all(isinstance(a, str) and a.strip() for a in agents):
            raise bad("agents", "a list of agent ids")
        harness = data.get("harness")
        if harness is not None and not isinstance(harness, str):
            raise bad("harness", "a string")
        bounds = data.get("bounds_s") or {}
        if not isinstance(bounds, dict) or not all(_is_number(v) and v > 0 for v in bounds.values()):
            raise bad("bounds_s", 'an object of seconds such as {"start": 15.0, "prompt": 5.0}')
        capabilities = data.get("capabilities")
        if capabilities is not None and not (
            isinstance(capabilities, list) and all(isinstance(c, str) for c in capabilities)
        ):
            raise bad("capabilities", "a list of operation names")
        canaries = data.get("canaries") or {}
        if not isinstance(canaries, dict) or not all(isinstance(v, str) for v in canaries.values()):
            raise bad("canaries", "an object {token in the trace: what it stands for}")
        return cls(
            agents=tuple(a.strip() for a in agents),
            harness=harness,
            bounds_s={k: float(v) for k, v in bounds.items()},
            capabilities=None if capabilities is None else tuple(capabilities),
            token=data.get("token") is True,
            canaries=dict(canaries),
        )

    def to_json(self) -> dict[str, JSONValue]:
        """The object of a header's `declared`; members that say nothing are left out."""
        data: dict[str, JSONValue] = {}
        if self.agents:
            data["agents"] = list(self.agents)
        if self.harness is not None:
            data["harness"] = self.harness
        if self.bounds_s:
            data["bounds_s"] = dict(self.bounds_s)
        if self.capabilities is not None:
            data["capabilities"] = list(self.capabilities)
        if self.token:
            data["token"] = True
        if self.canaries:
            data["canaries"] = dict(self.canaries)
        return data


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a trace."""

    created: str | None = None
    target: str | None = None
    upstream: str | None = None
    daemon_version: str | None = None
    declared: Declared = field(default_factory=Declared)

    def to_json(self) -> dict[str, JSONValue]:
        """The header as the object of its line."""
        return {
            "kind": "header",
            "format": FORMAT,
            "created": self.created,
            "target": self.target,
            "upstream": self.upstream,
            "daemon_version": self.daemon_version,
            "declared": self.declared.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole recording: exchanges and marks in the order of their numbers.

    `warnings` names what was passed over (a torn last line); the rest still counts.
    """

    header: Header
    exchanges: tuple[Exchange, ...]
    marks: tuple[Mark, ...]
    path: str | None = None
    warnings: tuple[str, ...] = ()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < MAX_SECONDS


def encode(line: Mapping[str, JSONValue]) -> bytes:
    """One trace line, newline included. Lone surrogates stay readable: they are escaped."""
    try:
        return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(line, separators=(",", ":")).encode() + b"\n"


class _BrokenLineError(ValueError):
    """Why a line is no part of a trace; `reader` turns it into a TraceError with file and line."""


def _depth_exceeds(value: JSONValue, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ())
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def _decode(raw: bytes) -> JSONValue:
    try:
        return from_json(raw)
    except ValueError as fast:
        if "recursion limit" in str(fast):
            raise _BrokenLineError(f"JSON nested deeper than {MAX_DEPTH} levels") from None
        # The fast parser refuses lone surrogates, which JavaScript connectors do send.
        try:
            value = json.loads(raw.decode("utf-8", "surrogatepass"))
        except RecursionError:
            raise _BrokenLineError(f"JSON nested deeper than {MAX_DEPTH} levels") from None
        except ValueError:
            raise _BrokenLineError(f"not JSON ({printable(fast, 160)})") from None
        if _depth_exceeds(value, MAX_DEPTH):
            raise _BrokenLineError(f"JSON nested deeper than {MAX_DEPTH} levels") from None
        return value


def _pairs(value: JSONValue, what: str) -> Sequence[Sequence[str]]:
    # Most of the time of reading goes by here: exact types are looked at first, and told apart only when they fail.
    if type(value) is list:
        for pair in value:
            if type(pair) is not list or len(pair) != 2:
                break
            name, text = pair
            if type(name) is not str or type(text) is not str:
                break
        else:
            return value
        raise _BrokenLineError(
            f"{what} holds {printable(json.dumps(pair), 60)}, expected a [name, value] pair of strings"
        )
    raise _BrokenLineError(f"{what} is {printable(json.dumps(value), 60)}, expected a list of [name, value] pairs")


def _body(value: JSONValue, what: str) -> Body | None:
    if value is None:
        return None
    if isinstance(value, dict):
        if value.get("cut"):
            size, text, sha256 = value.get("size"), value.get("text"), value.get("sha256")
            return Body(
                "cut",
                text if isinstance(text, str) else "",
                value.get("media_type"),
                size if isinstance(size, int) else None,
                sha256 if isinstance(sha256, str) else None,
            )
        if "json" in value:
            return Body("json", value["json"])
        for kind in ("text", "base64"):
            if isinstance(value.get(kind), str):
                return Body(kind, value[kind], value.get("media_type"))
    raise _BrokenLineError(
        f"{what} is {printable(json.dumps(value), 80)}, expected null, or an object with json, text, base64 or cut"
    )


def _exchange(data: dict[str, JSONValue], line: int, raw: bytes) -> Exchange:
    seq, t0, t1 = data.get("seq"), data.get("t0"), data.get("t1")
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise _BrokenLineError(f"seq is {printable(json.dumps(seq), 40)}, expected a whole number")
    if not _is_number(t0) or not _is_number(t1):
        raise _BrokenLineError(f"t0 and t1 are {printable(json.dumps([t0, t1]), 60)}, expected seconds")
    request = data.get("request")
    if not isinstance(request, dict):
        raise _BrokenLineError("an exchange without its request object")
    method, path = request.get("method"), request.get("path")
    if not isinstance(method, str) or not isinstance(path, str):
        raise _BrokenLineError("request.method and request.path must be strings")
    response = data.get("response")
    parsed: Response | None = None
    if response is not None:
        if not isinstance(response, dict) or not isinstance(response.get("status"), int):
            raise _BrokenLineError("response is neither null nor an object with a status")
        parsed = Response(
            _pairs(response.get("headers") or [], "response.headers"),
            _body(response.get("body"), "response.body"),
            response["status"],
        )
    error = data.get("error")
    kind = error.get("kind") if isinstance(error, dict) else error
    if kind is not None and not isinstance(kind, str):
        raise _BrokenLineError("error.kind must be a string")
    fault = data.get("fault")
    if fault is not None and not isinstance(fault, dict):
        raise _BrokenLineError("fault must be an object with a kind")
    conn = data.get("conn")
    return Exchange(
        seq,
        conn if isinstance(conn, int) else None,
        float(t0),  # type: ignore[arg-type]  # _is_number has looked
        float(t1),  # type: ignore[arg-type]
        Request(
            _pairs(request.get("headers") or [], "request.headers"),
            _body(request.get("body"), "request.body"),
            method.upper(),
            path,
            _pairs(request.get("query") or [], "request.query"),
        ),
        parsed,
        kind,
        fault,
        line,
        raw,
    )


def _mark(data: dict[str, JSONValue], line: int) -> Mark:
    seq, t, name, extra = data.get("seq"), data.get("t", 0.0), data.get("name"), data.get("data")
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise _BrokenLineError(f"seq is {printable(json.dumps(seq), 40)}, expected a whole number")
    if not isinstance(name, str) or not _is_number(t):
        raise _BrokenLineError("a mark needs a name (string) and t (seconds)")
    return Mark(seq, float(t), name, extra if isinstance(extra, dict) else {}, line)


def _header(data: JSONValue, where: str) -> Header:
    if not isinstance(data, dict) or data.get("kind") != "header":
        raise TraceError(
            "the first line is not a signet-trace/1 header",
            where=where,
            remedy=_REMEDY_RECORD,
        )
    if data.get("format") != FORMAT:
        raise TraceError(
            f"the format is {printable(json.dumps(data.get('format')), 60)}, this kit reads {FORMAT}",
            where=where,
            remedy="upgrade the kit (pip install -U signet-conformance), or " + _REMEDY_RECORD,
        )
    declared = data.get("declared") or {}
    if not isinstance(declared, dict):
        raise TraceError("declared is not an object", where=where, remedy="mend the header line")

    def text(member: str) -> str | None:
        value = data.get(member)
        return value if isinstance(value, str) else None

    return Header(
        text("created"), text("target"), text("upstream"), text("daemon_version"), Declared.from_json(declared, where)
    )


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Millions of small objects without a cycle among them: collecting meanwhile doubles the reading time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def read(path: str | os.PathLike[str]) -> Trace:
    """Read a trace file.

    Raises TraceError when the file cannot be opened, is not signet-trace/1, or is damaged before its
    last line. A torn last line (a recorder that was killed) is named in `Trace.warnings` instead.
    """
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as stream, _collector_paused():
            return _read(stream, name)
    except IsADirectoryError:
        raise TraceError(
            "is a folder, not a trace file", where=printable(name, 400), remedy="name the files in it"
        ) from None
    except (OSError, ValueError) as failure:
        # ValueError: a name with a null byte, which no file has.
        raise TraceError(
            f"cannot be read: {getattr(failure, 'strerror', None) or failure}",
            where=printable(name, 400),
            remedy="check the path and its permissions",
        ) from None


def _read(stream: BinaryIO, name: str) -> Trace:
    exchanges: list[Exchange] = []
    marks: list[Mark] = []
    header: Header | None = None
    warnings: list[str] = []
    seen: set[int] = set()
    number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            raise TraceError(
                f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB, no trace line is",
                where=_place(name, number),
                remedy="record with --body-limit so that large bodies are cut",
            )
        if raw.isspace():
            continue
        try:
            data = _decode(raw)
            if header is None:
                header = _header(data, _place(name, number))
                continue
            entry = _entry(data, number, raw)
            if entry.seq in seen:
                raise _BrokenLineError(f"number {entry.seq} occurs twice")
        except _BrokenLineError as broken:
            where = _place(name, number)
            if header is not None and not raw.endswith(b"\n"):
                warnings.append(f"{where}: the last line is torn and was left out ({broken}); the rest counts")
                break
            if header is None:
                raise TraceError(f"not a {FORMAT} file: {broken}", where=where, remedy=_REMEDY_RECORD) from None
            remedy = "take the line out, or record the session again"
            raise TraceError(str(broken), where=where, remedy=remedy) from None
        seen.add(entry.seq)
        if isinstance(entry, Exchange):
            exchanges.append(entry)
        else:
            marks.append(entry)
    if header is None:
        raise TraceError(
            "the file is empty, a trace begins with a header line", where=_place(name, 1), remedy=_REMEDY_RECORD
        )
    exchanges.sort(key=lambda e: e.seq)
    marks.sort(key=lambda m: m.seq)
    return Trace(header, tuple(exchanges), tuple(marks), name, tuple(warnings))


def _place(name: str, line: int) -> str:
    return f"{printable(name, 400)}:{line}"


def _entry(data: JSONValue, line: int, raw: bytes) -> Exchange | Mark:
    if not isinstance(data, dict):
        raise _BrokenLineError("not an object")
    kind = data.get("kind")
    if kind == "exchange":
        return _exchange(data, line, raw)
    if kind == "mark":
        return _mark(data, line)
    raise _BrokenLineError(f"kind is {printable(json.dumps(kind), 40)}, expected exchange or mark")
