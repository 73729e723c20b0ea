"""The parts of a trace, frozen: exchanges with their messages, marks, the header and its declarations."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, field, to_builtins
from msgspec.structs import force_setattr

from signet_conformance.errors import TraceError, printable
from signet_conformance.trace.parsing import JSONValue, NotJSONError, parse

FORMAT = "signet-trace/1"
MAX_SECONDS = 1e15

Pairs = tuple[tuple[str, str], ...]
"""Names with values, as sent: in order, repeats kept."""

Seconds = Annotated[float, Meta(gt=-MAX_SECONDS, lt=MAX_SECONDS)]


class Body(Struct, frozen=True, gc=False):
    """The body of a message: one of `json`, `text` and `base64` is set. Of a `cut` body, `text` is a part or missing.

    A cut body has `size` (bytes) and `sha256`. `undecoded` names the content coding (or `unknown`) that the recorder
    could not decode; no byte of such a body is kept, since it could not be searched for secrets. `undecoded` is
    `NOT_CAPTURED` if the trace was made from a capture without the body; then `sha256` is unknown, and often `size`.
    """

    json: JSONValue = UNSET
    text: str | UnsetType = UNSET
    base64: str | UnsetType = UNSET
    cut: bool = False
    media_type: str | None = None
    size: int | None = None
    sha256: str | None = None
    undecoded: str | None = None
    object: dict[str, JSONValue] | None = None
    """The body as a JSON object, else None. Text that parses as an object counts: the daemon parses it too."""

    def __post_init__(self) -> None:
        # Set here, once for all readers; a member `object` in the line is overwritten.
        force_setattr(self, "object", self._object())

    @property
    def kind(self) -> str | None:
        """`cut`, `json`, `text` or `base64`; None for an object that is not a body."""
        if self.cut:
            return "cut"
        if self.json is not UNSET:
            return "json"
        if self.text is not UNSET:
            return "text"
        return None if self.base64 is UNSET else "base64"

    @property
    def value(self) -> JSONValue:
        """The JSON value, the text, the base64 text, or what was kept of a cut body's text."""
        if self.json is not UNSET and not self.cut:
            return self.json
        if self.text is not UNSET:
            return self.text
        return "" if self.cut else self.base64

    def _object(self) -> dict[str, JSONValue] | None:
        if self.json is not UNSET:
            return self.json if isinstance(self.json, dict) and not self.cut else None
        text = None if self.cut else self._readable_text()
        if text is not None and text.lstrip("\ufeff \t\r\n").startswith("{"):
            try:
                # The same reader as for lines: half an emoji is read, a body nested too deep is refused.
                parsed = parse(text.lstrip("\ufeff").encode("utf-8", "surrogatepass"))
            except NotJSONError:
                return None
            return parsed if isinstance(parsed, dict) else None
        return None

    def _readable_text(self) -> str | None:
        """The text that the daemon parses: each byte that is not UTF-8 is read as U+FFFD."""
        if isinstance(self.text, str):
            return self.text
        if not isinstance(self.base64, str):
            return None
        try:
            return b64decode(self.base64, validate=True).decode("utf-8", "replace")
        except ValueError:
            return None


class Message(Struct, frozen=True, gc=False):
    """Headers and body of a request or a response."""

    headers: Pairs = ()
    body: Body | None = None

    def header(self, name: str) -> str | None:
        """The first value of a header, by its lower-case `name`; None when it was not sent."""
        for pair in self.headers:
            if pair[0].lower() == name:
                return pair[1]
        return None


class Request(Message, frozen=True, gc=False, kw_only=True):
    """One request: method in upper case, path without query, query as ordered pairs.

    `incomplete` is True if the client disconnected before it had sent the whole body.
    """

    method: str
    path: str
    query: Pairs = ()
    incomplete: bool = False


class Response(Message, frozen=True, gc=False, kw_only=True):
    """One response: its status, headers and body."""

    status: int


class ErrorOfLine(Struct, frozen=True, gc=False):
    """The `error` object of an exchange's line."""

    kind: str | None = None


if TYPE_CHECKING:
    ErrorKind = str | None
else:
    # The decoder reads the line's object; LineReader then replaces it by its kind.
    ErrorKind = str | ErrorOfLine | None


ERRORS = ("upstream_refused", "upstream_reset", "upstream_timeout", "client_closed", "not_carried", "fault")
"""Why an exchange has no answer (`Exchange.error`); another reason is read, and decides nothing."""
NOT_CARRIED = "not_carried"
"""The error of an exchange whose request the recorder refused to pass on, such as an upgrade."""
PENDING = "pending"
"""The kind of a pending line, written when a request arrives. It counts only if the exchange's line is missing."""
NOT_WRITTEN = "not written"
"""`undecoded` of a body in a pending line: the recorder was killed before it wrote the exchange's line."""
NOT_CAPTURED = "not captured"
"""`undecoded` of a body that was sent but is missing in the capture, such as a browser's, behind the trace."""
OVER_LIMIT = "over the limit"
"""The `why` of a gap: the request's body was too large, and the recorder kept only part of it."""


class Exchange(Struct, frozen=True, gc=False, kw_only=True, tag_field="kind", tag="exchange"):
    """One recorded request with its response, or with the reason why none came.

    `error` is one of ERRORS or None, if the trace was written by the kit; `fault` is the fault that changed or answered
    the exchange. `line` is its line number in the file, `raw` the bytes of that line.
    """

    seq: int
    conn: int | None = None
    t0: Seconds
    t1: Seconds
    request: Request
    response: Response | None = None
    error: ErrorKind = None
    fault: dict[str, JSONValue] | None = None
    held_ms: float | None = None
    """How long the recorder itself delayed the end of the answer; None if not noticeably."""
    line: int = 0
    raw: bytes = b""
    pending: bool = False
    """Whether only its PENDING line was written."""

    @property
    def is_unhandled(self) -> bool:
        """Whether no daemon can have handled it: the request was incomplete, or the recorder did not pass it on."""
        return self.response is None and (self.request.incomplete or self.error == NOT_CARRIED)


class Mark(Struct, frozen=True, gc=False, kw_only=True, tag_field="kind", tag="mark"):
    """A line that the kit writes between exchanges, such as: a step was given to the connector, a fault began."""

    seq: int
    t: Seconds = 0.0
    name: str
    data: dict[str, JSONValue] = {}
    line: int = 0


GIVEN_CREDENTIAL = "SIGNET_CONFORMANCE_TOKEN"
"""The name that the connector's daemon token has among the canaries (`Declared.canaries`)."""
BOUNDS = ("start", "prompt", "tool", "compact", "end")
"""The calls for which a target can declare a timeout (`Declared.bounds_s`)."""


class Declared(Struct, frozen=True, omit_defaults=True):
    """What the target declares about itself, because a trace cannot show it. None means: not declared."""

    agents: tuple[str, ...] = ()
    harness: str | None = None
    bounds_s: Mapping[str, float] = field(default_factory=dict)
    capabilities: tuple[str, ...] | None = None
    token: bool = False
    prompt_chars: int | None = None
    """The connector cuts a user's prompt after this many characters; None: it does not."""
    bypass: str | None = None
    """Who switches the connector off when the user sets the bypass: `connector` (the default) or `application`."""
    recovers_s: float | None = None
    """How long after an outage or a fault the connector may still be silent; None: not at all."""
    canaries: Mapping[str, str] = field(default_factory=dict)
    """Secrets that the kit planted: the placeholder that stands for each in the trace, and its name."""

    @property
    def planted(self) -> Mapping[str, str]:
        """The canaries that no request may contain: all but the daemon token, which requests have to carry."""
        return {placeholder: name for placeholder, name in self.canaries.items() if name != GIVEN_CREDENTIAL}

    @property
    def given_token(self) -> str | None:
        """The placeholder that stands for the connector's daemon token in the trace; None if there was no token."""
        return next((placeholder for placeholder, name in self.canaries.items() if name == GIVEN_CREDENTIAL), None)

    @classmethod
    def from_json(cls, data: Mapping[str, JSONValue], where: str = "declared") -> Declared:
        """Read the header's `declared` object; raise TraceError naming the member that is off."""
        known: dict[str, JSONValue] = {}
        for member, (kind, expected) in _DECLARED.items():
            given = data.get(member)
            if given is None or (not given and member in _MAY_BE_EMPTY):
                continue
            try:
                known[member] = convert(given, kind)
            except (ValidationError, UnicodeEncodeError):
                raise TraceError(
                    f"declared.{member} is {printable(json.dumps(given, default=str))}, expected {expected}",
                    where=where,
                    remedy="fix the header line, or pass --agent, --harness and --bound instead",
                ) from None
        return cls(**{**known, "agents": tuple(agent.strip() for agent in known.get("agents", ()))})

    def to_json(self) -> dict[str, JSONValue]:
        """The object of a header's `declared`, without members that were not declared."""
        given = to_builtins(self).items()
        return {name: list(value) if isinstance(value, tuple) else value for name, value in given}


_DECLARED: Mapping[str, tuple[Any, str]] = {
    "agents": (tuple[Annotated[str, Meta(pattern=r"\S")], ...], "a list of agent ids"),
    "harness": (str, "a string"),
    "bounds_s": (
        dict[str, Annotated[float, Meta(gt=0, lt=MAX_SECONDS)]],
        'an object of seconds such as {"start": 15.0, "prompt": 5.0}',
    ),
    "capabilities": (tuple[str, ...], "a list of operation names"),
    "token": (bool, "true or false"),
    "prompt_chars": (Annotated[int, Meta(ge=1)], "a whole number of characters, 1 or more"),
    "bypass": (Literal["connector", "application"], '"connector" or "application"'),
    "recovers_s": (Annotated[float, Meta(ge=0, lt=MAX_SECONDS)], "a number of seconds, 0 or more"),
    "canaries": (dict[str, str], "an object {token in the trace: its meaning}"),
}
"""The type of each member of a header's `declared`, and in words for a complaint."""
_MAY_BE_EMPTY = ("agents", "bounds_s", "canaries")
"""Members of which any empty value says nothing."""
RELEASES = ("connector_release", "host", "host_release")
"""The members of a header that say which releases were recorded."""
OPTIONAL = ("side", "played", "lasts", "in_prompt", "clock_s", "recorder", "kit", *RELEASES)
"""The members that a header leaves out if they are None."""


class Header(Struct, frozen=True):
    """The first line of a trace.

    `side` names what was upstream of the recorder: None for a daemon, `model` for a model server. `played` is True if
    no model was asked: a host that the kit plays wrote the requests that the real program would send. `lasts` says how
    long injected text stays in the model's context (request, turn, until-compaction, session; the shortest if several
    apply), `in_prompt` whether the host puts any into the user's message; both None if unknown. `clock_s` is the
    machine's monotonic clock at `created`: it relates the times of two recordings of one run. `recorder` is the
    recorder's process id, `kit` the kit's version. `connector_release`, `host` and `host_release` say what was
    recorded, if known.
    """

    created: str | None = None
    target: str | None = None
    upstream: str | None = None
    daemon_version: str | None = None
    declared: Declared = field(default_factory=Declared)
    side: str | None = None
    clock_s: float | None = None
    recorder: str | None = None
    kit: str | None = None
    connector_release: str | None = None
    host: str | None = None
    host_release: str | None = None
    played: bool | None = None
    lasts: str | None = None
    in_prompt: bool | None = None

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
            **{name: value for name in OPTIONAL if (value := getattr(self, name)) is not None},
        }


class Gap(Struct, frozen=True):
    """A part of the traffic that the recorder could not pass on, decode or keep. It is not a breach.

    `side` says whose body is missing: `request` or `answer`; None if the whole request was not passed on. `why` is the
    content coding, `OVER_LIMIT` or the recorder's reason.
    """

    exchange: int
    method: str
    path: str
    side: str | None
    why: str


class Trace(Struct, frozen=True):
    """A whole recording: exchanges and marks in the order of their numbers.

    If the recording is large, its exchanges are read from the file on access, which may raise TraceError. `warnings`
    names what was skipped, such as a torn last line; the rest still counts. `part` is True if recordings of other
    scenarios of the same run are missing, even if its own marks are complete. `model` is the recording between the
    harness and its model, made at the same time; None without one. `gaps` is what the recorder could not pass on,
    decode or keep. `growing` is True while it is still being recorded: an event that is missing may still come.
    """

    header: Header
    exchanges: Sequence[Exchange]
    marks: tuple[Mark, ...]
    path: str | None = None
    warnings: tuple[str, ...] = ()
    part: bool = False
    model: Trace | None = None
    growing: bool = False
    gaps: tuple[Gap, ...] = ()

    def instant(self, other: Trace, t: float) -> float:
        """Convert the time `t` of `other` to this recording's time. Raises ValueError unless both have `clock_s`."""
        ours, theirs = self.header.clock_s, other.header.clock_s
        if ours is None or theirs is None:
            raise ValueError("the two recordings have no clock in common")
        return t + theirs - ours


def forget_lines(trace: Trace) -> None:
    """Free the raw lines of a trace's exchanges, which nothing reads after the trace is judged."""
    for exchange in trace.exchanges:
        force_setattr(exchange, "raw", b"")


def is_seconds(value: object) -> bool:
    """Whether a JSON value is a number of seconds, positive or negative, below MAX_SECONDS."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < MAX_SECONDS


def encode(line: Mapping[str, JSONValue]) -> bytes:
    """One trace line, newline included. If it has a lone surrogate, all of it is escaped to ASCII."""
    try:
        return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(line, separators=(",", ":")).encode() + b"\n"
