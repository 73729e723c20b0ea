"""The steps of scenarios, one class each: what the user does, and what the kit does to daemon and recorder.

In arguments {"agent": number} means one of the target's agents, {"key": session} the native key of a session,
{"from": name, "pointer": …} a part of an earlier result.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from signet_conformance.errors import printable
from signet_conformance.files.documents import Lenient, Maybe, refusal, shown_value
from signet_conformance.trace.fault_kinds import FAULT_KINDS

UNKNOWN_MEMORY = "00000000-0000-4000-8000-000000000000"
"""A memory id that no daemon has."""


def _agent(agent: Any) -> Any:
    if isinstance(agent, bool) or not isinstance(agent, int | str):
        raise refusal(f"is {shown_value(agent)}, expected a whole number or a text")
    return agent


class Step(Lenient):
    """The members of all steps. Other members are passed to the driver unchanged."""

    model_config = ConfigDict(extra="allow", validate_by_name=True, validate_by_alias=True)

    step: str
    agent: Maybe[Annotated[int | str, BeforeValidator(_agent)]] = None
    """a number among the target's agents, or an agent id"""
    project: Maybe[str] = None
    """a text: the folder that the user works in"""
    text: Maybe[str] = None
    """a text: what the user says"""
    reply: Maybe[str] = None
    """a text: what the model answers"""
    tool: Maybe[str] = None
    """a text: the tool that is called"""
    arguments: Maybe[dict[str, Any]] = None
    """an object: the tool's arguments"""
    summary: Maybe[str] = None
    """a text: the summary that replaces the conversation"""
    fault: Maybe[dict[str, Any]] = None
    """an object such as {"kind": "reset"}"""
    match: Maybe[dict[str, Any]] = None
    """an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to"""
    count: Maybe[int] = None
    """a whole number: how many requests the fault applies to"""
    as_: Annotated[Maybe[str], Field(alias="as")] = None
    """a text: the name by which later steps refer to the result"""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # Files must have the member `step`; in Python its default is the name that belongs to the class.
        schema = handler.resolve_ref_schema(handler(core))
        schema["properties"]["step"].pop("default", None)
        schema["required"] = ["step", *schema.get("required", ())]
        return schema

    def to_json(self) -> dict[str, Any]:
        """Return the step as files and messages to a driver program have it."""
        return {"step": self.step, **self.model_dump(exclude_unset=True, by_alias=True)}


class ConnectorStep(Step):
    """A step of the connector, in a session with a name local to the scenario."""

    session: str
    """a name within the scenario such as "s1"
    """


class KitStep(Step):
    """A step that the kit performs itself, and that no driver gets."""

    model_config = ConfigDict(extra="forbid")


class StartStep(ConnectorStep):
    """The user opens a session, or an agent opens one for its sub-agent."""

    step: Literal["start"] = "start"
    parent: Maybe[str] = None
    """a session name: the session whose sub-agent works in this one"""
    subagent: Maybe[str] = None
    """a text: the harness's own id of the sub-agent; not an agent of Signet"""


class PromptStep(ConnectorStep):
    """The user says something."""

    step: Literal["prompt"] = "prompt"
    text: str
    """a text: what the user says"""
    repeat: Maybe[Annotated[int, Field(ge=1, le=100_000)]] = None
    """a whole number: how often the user says the text, each time with its number before it"""

    for_late_start: bool = False
    """true: the user says it only if the fault of the session's start has not met a request of the connector yet"""
    stopped: bool = False
    """true: the user stops the turn after the connector has heard of it and before the model is asked; drivers that do
    not list stopped_prompt among their steps in the answer to hello skip it
    """
    attached: Maybe[list[Literal["file", "image"]]] = None
    """a list such as ["image"]: what the user attaches to the text, which may be empty then; drivers that do not list
    attached_prompt among their steps in the answer to hello skip it
    """
    feedback: Maybe[dict[str, float]] = None
    """an object: memory id to how useful the memory was, from -1 to 1"""

    @property
    def whole_text(self) -> str:
        """The text, repeated as `repeat` says."""
        if self.repeat is None:
            return self.text
        return "".join(f"{number:05} {self.text}" for number in range(self.repeat)).strip()


class SessionlessPromptStep(ConnectorStep):
    """A prompt outside any session of the harness: from a hook, a timer or a command line.

    `session` names only this turn. Drivers that do not list the step in their answer to hello skip it.
    """

    step: Literal["sessionless_prompt"] = "sessionless_prompt"
    text: str
    """a text: what the user says"""


class ToolStep(ConnectorStep):
    """The model calls a tool."""

    step: Literal["tool"] = "tool"
    tool: str
    """a text: the tool that is called"""


class CompactStep(ConnectorStep):
    """The harness compacts the conversation: pre_compaction and compaction_complete in one step."""

    step: Literal["compact"] = "compact"
    by_itself: Annotated[
        bool,
        Field(description="true: the harness compacts because its context is full, not because the user asks for it"),
    ] = False


class PreCompactionStep(ConnectorStep):
    """The harness is about to compact the conversation."""

    step: Literal["pre_compaction"] = "pre_compaction"


class CompactionCompleteStep(ConnectorStep):
    """The conversation has been compacted."""

    step: Literal["compaction_complete"] = "compaction_complete"


class ResumeStep(ConnectorStep):
    """The user opens a session again."""

    step: Literal["resume"] = "resume"


class ClearStep(ConnectorStep):
    """The user clears the conversation, which begins another session."""

    step: Literal["clear"] = "clear"


class EndStep(ConnectorStep):
    """The user closes the session."""

    step: Literal["end"] = "end"


class ForkStep(ConnectorStep):
    """The user continues in a copy of the conversation, which is another session of the harness.

    Drivers that do not list the step in their answer to hello skip it.
    """

    step: Literal["fork"] = "fork"


class ReopenStep(ConnectorStep):
    """The user returns, in the running program, to the session that was left by a clear or a fork.

    Drivers that do not list the step in their answer to hello skip it.
    """

    step: Literal["reopen"] = "reopen"


class RestartHostStep(ConnectorStep):
    """The harness is killed, so it reports nothing, and is started again; the user continues the session.

    Whether the session keeps its id depends on the harness. Drivers that do not list the step in their answer to
    hello skip it.
    """

    step: Literal["restart_host"] = "restart_host"
    anew: Annotated[
        bool,
        Field(description="true: the harness gives the session another id; one that the kit plays knows that itself"),
    ] = False


class CloseStep(ConnectorStep):
    """The user closes the window of a session, and the harness keeps running, with or without other sessions.

    A driver that does not list the step in its answer to hello gets an end step instead.
    """

    step: Literal["close"] = "close"


class WaitStep(ConnectorStep):
    """Time passes in the harness: its clock is put forward, and timers that are due fire.

    Drivers that do not list the step in their answer to hello skip it.
    """

    step: Literal["wait"] = "wait"
    seconds: Annotated[float, Field(gt=0)]
    """a number of seconds above 0: how much time passes"""


def _known_fault(fault: dict[str, Any]) -> dict[str, Any]:
    name = fault.get("kind")
    kind = FAULT_KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise refusal(f"kind is {shown_value(name)}", f"one of {', '.join(FAULT_KINDS)}")
    known = ("kind", *kind.parameters)
    if unknown := [member for member in fault if member not in known]:
        raise refusal(f"{kind.name} has no {printable(unknown[0], 60)!r}", f"its members: {', '.join(known)}")
    if lacking := [member for member in kind.needs if member not in fault]:
        raise refusal(f"{kind.name} lacks {lacking[0]}", f"add {lacking[0]}, or choose another kind")
    return fault


def _known_match(match: dict[str, Any]) -> dict[str, Any]:
    for member, value in match.items():
        if member not in ("method", "path"):
            raise refusal(f"unknown member {printable(member, 60)!r}", "write method, path or both")
        if not isinstance(value, str):
            raise refusal(f"{member} is {shown_value(value)}, expected a text")
    return match


_STARTING = ("/api/hooks/session-start", "/health")
"""The paths of the requests with which a connector begins a session."""


class SwitchFaultOn(KitStep):
    """The recorder switches a fault on."""

    step: Literal["fault"] = "fault"
    fault: Annotated[dict[str, Any], AfterValidator(_known_fault)]
    """an object such as {"kind": "reset"}"""
    match: Maybe[Annotated[dict[str, Any], AfterValidator(_known_match)]] = None
    """an object such as {"path": "/api/hooks/*"}: the requests that the fault applies to"""

    @property
    def is_for_start(self) -> bool:
        """Whether only requests that begin a session meet it."""
        return (self.match or {}).get("path") in _STARTING


class SwitchFaultsOff(KitStep):
    """The recorder switches every fault off."""

    step: Literal["fault_off"] = "fault_off"


class RestartDaemon(KitStep):
    """The kit ends the daemon and starts it again."""

    step: Literal["restart_daemon"] = "restart_daemon"
    claims_expire: bool = False
    """true: the daemon was away so long that it no longer knows any session, as after a night; a daemon other than the
    embedded one is only restarted
    """


AnyStep = Annotated[
    StartStep
    | PromptStep
    | SessionlessPromptStep
    | ToolStep
    | CompactStep
    | PreCompactionStep
    | CompactionCompleteStep
    | ResumeStep
    | ClearStep
    | EndStep
    | ForkStep
    | ReopenStep
    | RestartHostStep
    | CloseStep
    | WaitStep
    | SwitchFaultOn
    | SwitchFaultsOff
    | RestartDaemon,
    Field(discriminator="step"),
]
