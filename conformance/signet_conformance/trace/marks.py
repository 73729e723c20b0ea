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
    """What one mark says. `seq` is its number in the recording, 0 before it is written.

    `other` holds the members that the class does not name.
    """

    NAME: ClassVar[str] = ""

    seq: int = 0
    other: dict[str, JSONValue] = {}

    @property
    def data(self) -> dict[str, JSONValue]:
        """The members as they are written: those that say nothing are left out."""
        named = {field.name: getattr(self, field.name) for field in _members(type(self))}
        silent = {field.name for field in _members(type(self)) if named[field.name] == field.default}
        return {**{name: value for name, value in named.items() if name not in silent}, **self.other}

    @classmethod
    def read(cls, mark: Mark) -> Self:
        """Read a recorded mark of this name."""
        names = {field.name for field in _members(cls)}
        told = {name: value for name, value in mark.data.items() if name in names}
        try:
            made = convert(told, cls)
        except (ValidationError, UnicodeEncodeError):
            # Half an emoji where a number belongs cannot even be quoted in msgspec's complaint.
            made = cls(**{field.name: _member(field, told) for field in _members(cls)})
        force_setattr(made, "seq", mark.seq)
        force_setattr(made, "other", {name: value for name, value in mark.data.items() if name not in names})
        return made


@cache
def _members(kind: type[KitMark]) -> tuple[FieldInfo, ...]:
    return tuple(field for field in fields(kind) if field.name not in KitMark.__struct_fields__)


def _member(field: FieldInfo, told: Mapping[str, JSONValue]) -> Any:
    try:
        return convert(told[field.name], field.type)
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
    """A scenario is over. `error` tells why it was broken off, `part` that it was picked out of a whole run."""

    NAME = "scenario_end"

    name: str | None
    error: Any
    part: bool = False


class StepMark(KitMark, frozen=True, kw_only=True):
    """A step is given to the connector: its number in the scenario from 0, and what the user does.

    `step` is a :class:`StepName`, or a word that only another kit knows. `agent` and `project` are those the session
    is opened with. `folder`, of a step that opens one, is the path in which the host was run, or that it was handed.
    `reply` is what the model answers to `text`. `arguments` are those of the `tool` as the host handed them to the
    connector, of several calls together; None where nothing is known of that.
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
    """The driver told the native id of a session: for the first time, or another one than before.

    `told_by` are the events by which the host tells a connector of the change, None where nothing is known of them;
    `end_untold` says that none of them, nor a later one, tells that the former session has ended.
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
    """A handler of the connector that did not end well, in the step of that number.

    `outcome` is one of the words above. `status` is the exit status of a command or the HTTP status of a method, `ms`
    how long it took, `text` one line of what it threw or said. `lost` is what the host saw: True where the user's turn
    was lost with it, False where the host caught it and went on, None where the driver does not say; a handler that
    blocked has lost the turn in any case.
    `late_ms` is by how much the machine made a timer of the driver late meanwhile, or kept the connector from the
    processor; None where the driver does not say.
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

    `index` is the number of the step meanwhile, None while the connector was loaded.
    """

    NAME = "printed"

    index: int | None = None
    text: str | None = None


class LoadedMark(KitMark, frozen=True, kw_only=True):
    """Whether the host, or the kit in its place, could load the connector. `words` are what was said where not.

    `release` is the host's, `newer` are later ones that the kit knows. `real` tells that the host is the program that
    people run, and not played by the kit. `ahead` are the first day of a host that is newer than the connector, and the
    day of the connector. `awaits_compaction` tells that the host waits for the hook before a compaction.
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
    """Whether a host takes what the installer wrote or the connector registered: a file, a tool, an event, an output.

    `file` names it, `release` is the host's, `words` are those it refuses it with. `minor` tells that the host takes it
    all the same, or loses nothing by it. Of a handler of an `event` that the host does not know: `operations` are those
    that it is for, `elsewhere` the known event under which the connector has a handler for them too, `formerly` that
    another release of the host knows it.
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
    """What a host took of a connector: numbers of handlers, of tools, of anything else, and of what it refused.

    None is a number that is not known. `mode` is the registration of a host that asks a plugin several times.
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
    """How the host's files are after the installer ran: what stands `twice`, what is `old`, what of others `changed`.

    `how` is one of the words above; `older` names the older release, or what is known of it. Each entry is a text that
    names the file. `words` are the installer's where it failed.
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
    """What the model was told by the tool of the step of that number: that what it asked for is done.

    Absent where a tool told something else, or what it told cannot be read.
    """

    NAME = "tool_answer"

    index: int | None
    done: bool = False


class OfferedMark(KitMark, frozen=True, kw_only=True):
    """The tools that a connector offers to the model, each with the members that its schema names.

    The names are those of scenarios where the target's own are known to mean the same.
    """

    NAME = "offered"

    tools: dict[str, tuple[str, ...]] = {}


class ObservedMark(KitMark, frozen=True, kw_only=True):
    """The input of a run of the connector's command by a real program, or an event that its plugins heard.

    `event` is the program's own name of the occasion, `members` those of the JSON on standard input, or of the event,
    `env` the names of the environment; `ms` and `status` where a run has ended. `args` of a plugin's event are members
    whose value tells one kind of it from another, as `reason=quit`; `occasion` is that value of a hook's input, as
    `compact` of a SessionStart.
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
    """A request that the connector made to the daemon's default port, at `address`, and not where it was told to.

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
    """A process of the connector's that went on `after_s` seconds after its harness had closed its pipes and ended.

    `command` is its command line, redacted, `memory_mb` its resident memory; without a command nothing was left.
    """

    NAME = "left"

    command: str | None = None
    memory_mb: float | None = None
    after_s: float | None = None


class RemarkMark(KitMark, frozen=True, kw_only=True):
    """A remark of the driver on the connector's installation.

    `unheard`: it is why the connector receives no event, or not every event, of its harness.
    """

    NAME = "remark"

    text: str | None
    unheard: bool = False


NO_ORIGIN = "a page that names no origin"
"""Recorded as the Origin of a request that had no Origin, and was known by its Sec-Fetch-Site."""


class RefusedMark(KitMark, frozen=True, kw_only=True):
    """A page in a browser, none of the daemon's own, sent a request that the recorder refused."""

    NAME = "refused"

    origin: str | None
    method: str | None
    path: str | None

    @property
    def by(self) -> str:
        """The Origin that gave it away."""
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
        """Whether it is on from here; a mark that does not say is of something that is."""
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
        """What tells the fault from others that are on: its number, or else its kind."""
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
    """What all marks of the kit say, in order."""
    return (said for mark in trace.marks if (said := read_mark(mark)) is not None)


def name_host(mark: LoadedMark | InstalledMark | RegisteredMark | ReinstalledMark, otherwise: str = "its host") -> str:
    """The host of a mark with its release; `otherwise` where the mark does not name it."""
    return " ".join(filter(None, (mark.host or otherwise, mark.release)))
