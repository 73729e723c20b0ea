"""The kit's own marks, a class for each name, for writing and reading.

A mark of another name, or a member that a class does not name, is kept and ignored. Recordings are not trusted: a
member of the wrong type counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeVar

from msgspec import NODEFAULT, Meta, Struct, ValidationError, convert
from msgspec.structs import FieldInfo, fields, force_setattr

from signet_conformance.trace.model import Mark, Trace
from signet_conformance.trace.parsing import JSONValue


class StepName(StrEnum):
    """The user's acts in a step, as scenarios, driver messages and marks spell them."""

    START = "start"
    PROMPT = "prompt"
    SESSIONLESS_PROMPT = "sessionless_prompt"
    TOOL = "tool"
    COMPACT = "compact"
    PRE_COMPACTION = "pre_compaction"
    COMPACTION_COMPLETE = "compaction_complete"
    RESUME = "resume"
    CLEAR = "clear"
    END = "end"
    WAIT = "wait"
    CLOSE = "close"
    FORK = "fork"
    REOPEN = "reopen"
    RESTART_HOST = "restart_host"


class KitMark(Struct, frozen=True, kw_only=True):
    """One mark of the kit. `seq` is its number in the recording, 0 before it is written.

    `other` holds the members that the class does not name.
    """

    NAME: ClassVar[str] = ""

    seq: int = 0
    other: dict[str, JSONValue] = {}

    @property
    def data(self) -> dict[str, JSONValue]:
        """The members as they are written, without those that have their default value."""
        named = {field.name: getattr(self, field.name) for field in _members(type(self))}
        defaults = {field.name for field in _members(type(self)) if named[field.name] == field.default}
        return {**{name: value for name, value in named.items() if name not in defaults}, **self.other}

    @classmethod
    def read(cls, mark: Mark) -> Self:
        """Read a recorded mark of this name."""
        names = {field.name for field in _members(cls)}
        known = {name: value for name, value in mark.data.items() if name in names}
        try:
            typed = convert(known, cls)
        except (ValidationError, UnicodeEncodeError):
            # msgspec cannot quote a lone surrogate, such as half an emoji, in its error message.
            typed = cls(**{field.name: _member(field, known) for field in _members(cls)})
        force_setattr(typed, "seq", mark.seq)
        force_setattr(typed, "other", {name: value for name, value in mark.data.items() if name not in names})
        return typed


@cache
def _members(kind: type[KitMark]) -> tuple[FieldInfo, ...]:
    return tuple(field for field in fields(kind) if field.name not in KitMark.__struct_fields__)


def _member(field: FieldInfo, known: Mapping[str, JSONValue]) -> Any:
    try:
        return convert(known[field.name], field.type)
    except (KeyError, ValidationError, UnicodeEncodeError):
        if field.default_factory is not NODEFAULT:
            return field.default_factory()
        return None if field.default is NODEFAULT else field.default


class ScenarioMark(KitMark, frozen=True, kw_only=True):
    """A scenario begins.

    `earlier_keys` are those of sessions that the same connector process began in recordings before this one, and may
    still owe something.
    """

    NAME = "scenario"

    name: str | None
    title: str | None = None
    earlier_keys: tuple[str, ...] = ()


class ScenarioEndMark(KitMark, frozen=True, kw_only=True):
    """A scenario is over. `error` says why it was broken off; `part` is True if only a part of a run was chosen."""

    NAME = "scenario_end"

    name: str | None
    error: Any
    part: bool = False


class StepMark(KitMark, frozen=True, kw_only=True):
    """A step is given to the connector: its number in the scenario from 0, and what the user does.

    `step` is a :class:`StepName`, or a word that only another kit knows. `agent` and `project` are those with which the
    session is opened. If the step opens a session, `folder` is the path in which the host ran or that it was given.
    `reply` is what the model answers to `text`. `arguments` are what the host passed to the connector's `tool`, merged
    if it called the tool several times; None if they are unknown.
    """

    NAME = "step"

    index: int | None
    step: str | None
    session: str | None = None
    agent: str | None = None
    project: str | None = None
    folder: str | None = None
    text: str | None = None
    reply: str | None = None
    tool: str | None = None
    arguments: dict[str, JSONValue] | None = None


class SkippedMark(KitMark, frozen=True, kw_only=True):
    """The step of that number has no counterpart in the connector or its harness."""

    NAME = "skipped"

    index: int | None
    reason: Any


class SessionKeyMark(KitMark, frozen=True, kw_only=True):
    """The driver reported the host's id of a session: the first one, or a new one.

    `told_by` are the events by which the host reports the change to a connector, None if they are unknown; `end_untold`
    is True if neither these nor later events report that the former session has ended.
    """

    NAME = "session_key"

    session: str | None
    key: str | None
    told_by: tuple[str, ...] | None = None
    end_untold: bool = False


class ModelMark(KitMark, frozen=True, kw_only=True):
    """The model would be called now."""

    NAME = "model"

    session: str | None


BLOCKED, TIMED_OUT, THROWN, FAILED, SLOW = "blocked", "timed_out", "thrown", "failed", "slow"
"""Outcomes of a handler: it kept the turn from taking place, gave no answer, raised, ended badly, took long."""


class HandlerMark(KitMark, frozen=True, kw_only=True):
    """A handler of the connector that blocked, failed, timed out or was slow, in the step of that number.

    `outcome` is one of the words above. `status` is the exit status of a command or the HTTP status of a method, `ms`
    how long it took, `text` one line of what it threw or printed. `lost` is True if the user's turn was lost with it,
    False if the host caught the failure and continued, None if the driver does not say; a handler that blocked has lost
    the turn in any case. `late_ms` is how late a timer of the driver was meanwhile, or how long the connector waited
    for the processor; None if the driver does not say.
    """

    NAME = "handler"

    index: int | None
    event: str | None
    outcome: str | None
    status: float | int | None = None
    ms: float | int | None = None
    text: str | None = None
    lost: bool | None = None
    late_ms: float | int | None = None

    @property
    def lost_the_turn(self) -> bool:
        """Whether the user's turn did not take place because of it."""
        return self.outcome == BLOCKED or self.lost is True


class SentMark(KitMark, frozen=True, kw_only=True):
    """Where in the connector's code the requests of a step were sent, as far as its driver can tell.

    A request is its method, its path without a query, and places as `FILE:LINE` or `FILE:LINE:COLUMN`, the innermost
    first; in the order in which they were sent.
    """

    NAME = "sent"

    index: int | None
    requests: tuple[Annotated[tuple[str, ...], Meta(min_length=2)], ...] = ()


class PrintedMark(KitMark, frozen=True, kw_only=True):
    """What the connector's processes printed on standard error or gave to the host's logger, cut, without secrets.

    `index` is the number of the step at that time, None while the connector was loaded.
    """

    NAME = "printed"

    index: int | None = None
    text: str | None = None


class LoadedMark(KitMark, frozen=True, kw_only=True):
    """Whether the host, or the kit in its place, could load the connector. `words` is the error if it could not.

    `release` is the host's, `newer` are later ones that the kit knows. The host is `real` if it is the program that
    people run, and not played by the kit. If the host is newer than the connector, `ahead` has the first day of the
    host's release and the day of the connector. `awaits_compaction` is True if the host waits for the hook before a
    compaction.
    """

    NAME = "loaded"

    ok: bool | None
    host: str | None = None
    release: str | None = None
    newer: tuple[str, ...] = ()
    words: str | None = None
    real: bool = False
    ahead: tuple[str, ...] = ()
    awaits_compaction: bool = False


class InstalledMark(KitMark, frozen=True, kw_only=True):
    """Whether a host accepts what the installer wrote or the connector registered: a file, tool, event or output.

    `file` names it, `release` is the host's, `words` is the reason for a refusal. It is `minor` if the host accepts it
    nevertheless, or loses nothing by it. If the host does not know a handler's `event`: `operations` are those that the
    handler is for, `elsewhere` is a known event under which the connector has a handler for them too, and it was
    `formerly` known if another release of the host knows it.
    """

    NAME = "installed"

    accepted: bool | None
    file: str | None = None
    host: str | None = None
    release: str | None = None
    words: str | None = None
    minor: bool = False
    formerly: bool = False
    event: str | None = None
    operations: tuple[str, ...] = ()
    elsewhere: str | None = None


class RegisteredMark(KitMark, frozen=True, kw_only=True):
    """What a host accepted of a connector: numbers of handlers, of tools, of anything else, and of what it refused.

    A number is None if it is unknown. `mode` is the registration of a host that asks a plugin several times.
    """

    NAME = "registered"

    host: str | None = None
    release: str | None = None
    mode: str | None = None
    handlers: int | None = None
    tools: int | None = None
    others: int | None = None
    refused: int | None = None


ONCE, AGAIN, OVER = "once", "again", "over"
"""How a connector was installed: a first time, a second time, over what an older release had left."""


class ReinstalledMark(KitMark, frozen=True, kw_only=True):
    """The state of the host's files after the installer ran.

    It lists entries that are there `twice`, `old` ones of an older release, and entries of others that were `changed`;
    each is a text that names the file. `how` is one of the words above; `older` names the older release, or what is
    known of it. `words` is the installer's output if it failed.
    """

    NAME = "reinstalled"

    how: str | None
    host: str | None = None
    release: str | None = None
    older: str | None = None
    twice: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    words: str | None = None


class ToolAnswerMark(KitMark, frozen=True, kw_only=True):
    """The tool of the step of that number told the model that what it asked for is done.

    There is no such mark if a tool told something else, or if its answer cannot be read.
    """

    NAME = "tool_answer"

    index: int | None
    done: bool = False


class OfferedMark(KitMark, frozen=True, kw_only=True):
    """The tools that a connector offers to the model, each with the members that its schema names.

    A name of the target's own is replaced by that of the scenarios if both are known to mean the same.
    """

    NAME = "offered"

    tools: dict[str, tuple[str, ...]] = {}


class ObservedMark(KitMark, frozen=True, kw_only=True):
    """The input of the connector's command when a real program ran it, or an event that a plugin received.

    `event` is the program's own name of the occasion, `members` are those of the JSON on standard input, or of the
    event, `env` the names of environment variables; `ms` and `status` are known when a run has ended. `args` of a
    plugin's event are members whose value distinguishes kinds of it, such as `reason=quit`; `occasion` is that value in
    a hook's input, such as `compact` of a SessionStart.
    """

    NAME = "observed"

    event: str | None = None
    occasion: str | None = None
    args: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    cwd: str | None = None
    ms: float | None = None
    status: int | None = None


class StrayMark(KitMark, frozen=True, kw_only=True):
    """A request that the connector made to the daemon's default port, at `address`, instead of the given one.

    `token` is true if it had an Authorization header.
    """

    NAME = "stray"

    method: str | None
    path: str | None
    address: str | None = None
    token: bool = False


class UnheardPortMark(KitMark, frozen=True, kw_only=True):
    """Requests to the daemon's default port are not recorded; `words` say why, such as which process holds it."""

    NAME = "unheard_port"

    words: str | None = None


class LeftMark(KitMark, frozen=True, kw_only=True):
    """A process of the connector that kept running `after_s` seconds after its harness closed its pipes and ended.

    `command` is its command line, redacted, None if no process was left; `memory_mb` is its resident memory.
    """

    NAME = "left"

    command: str | None = None
    memory_mb: float | None = None
    after_s: float | None = None


class RemarkMark(KitMark, frozen=True, kw_only=True):
    """A remark of the driver on the connector's installation.

    `unheard` if this is why the connector receives no event, or not every event, of its harness.
    """

    NAME = "remark"

    text: str | None
    unheard: bool = False


NO_ORIGIN = "a page that names no origin"
"""Recorded as the Origin of a request that had no Origin, and was known by its Sec-Fetch-Site."""


class RefusedMark(KitMark, frozen=True, kw_only=True):
    """A web page that is not one of the daemon's own sent a request that the recorder refused."""

    NAME = "refused"

    origin: str | None
    method: str | None
    path: str | None

    @property
    def by(self) -> str:
        """The Origin by which it was recognised."""
        return "none, but a Sec-Fetch-Site" if self.origin in (NO_ORIGIN, None) else str(self.origin)


class NoRequestMark(KitMark, frozen=True, kw_only=True):
    """A client sent what cannot be read as a request, and was answered 400; `words` say what is known of it."""

    NAME = "no_request"

    conn: int | None
    words: str | None


class Switch(KitMark, frozen=True, kw_only=True):
    """Something is switched on or off."""

    on: bool | None

    @property
    def is_on(self) -> bool:
        """Whether it is on from here, which is the default."""
        return self.on is not False


class BypassMark(Switch, frozen=True, kw_only=True):
    """The user has set the connector's bypass, by the environment's `variable`."""

    NAME = "bypass"

    variable: str | None = None


class OutageMark(Switch, frozen=True, kw_only=True):
    """The daemon is away, as the author of the recording says."""

    NAME = "outage"


class FaultMark(Switch, frozen=True, kw_only=True):
    """A fault of the recorder, or a restart of the daemon.

    `match` says which requests it is for, `id` is its number in the recorder.
    """

    NAME = "fault"

    kind: str | None
    match: dict[str, JSONValue] | None = None
    id: int | None = None

    @property
    def identity(self) -> str:
        """Distinguishes the fault from others that are on: its number, or else its kind."""
        return str(self.kind if self.id is None else self.id)

    @property
    def is_restart(self) -> bool:
        """Whether the daemon is restarted, which is not a fault of the recorder."""
        return self.kind == RESTART


RESTART = "restart"

KINDS: Mapping[str, type[KitMark]] = {
    kind.NAME: kind for kind in (*KitMark.__subclasses__(), *Switch.__subclasses__()) if kind.NAME
}
"""The class of each name."""

MarkT = TypeVar("MarkT", bound=KitMark)


def read_mark(mark: Mark) -> KitMark | None:
    """Read a recorded mark; None for a name that is not the kit's."""
    kind = KINDS.get(mark.name)
    return None if kind is None else kind.read(mark)


def marks_of(trace: Trace, kind: type[MarkT]) -> Iterator[MarkT]:
    """Read the marks of one name, in order."""
    return (kind.read(mark) for mark in trace.marks if mark.name == kind.NAME)


def kit_marks(trace: Trace) -> Iterator[KitMark]:
    """All marks of the kit, in order."""
    return (typed for mark in trace.marks if (typed := read_mark(mark)) is not None)


def name_host(mark: LoadedMark | InstalledMark | RegisteredMark | ReinstalledMark, otherwise: str = "its host") -> str:
    """The host of a mark with its release; `otherwise` where the mark does not name it."""
    return " ".join(filter(None, (mark.host or otherwise, mark.release)))
