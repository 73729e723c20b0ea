"""A file of scenarios as a document. What a step may hold is said here once, one class a kind of step.

In arguments {"agent": number} stands for one of the target's agents, {"key": session} for the native key of a session,
{"from": name, "pointer": …} for a part of an earlier result.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from signet_conformance.files.documents import Document, Items, Maybe, Part, refusal, shown_value

LONGEST_NAME = 100


def _name(name: str) -> str:
    if not name.replace("-", "").isalnum() or len(name) > LONGEST_NAME:
        raise refusal(f"is {shown_value(name)}, expected a name", f"use up to {LONGEST_NAME} letters, digits and -")
    return name


def _agent(agent: Any) -> Any:
    if isinstance(agent, bool) or not isinstance(agent, int | str):
        raise refusal(f"is {shown_value(agent)}, expected a whole number or a text")
    return agent


Name = Annotated[
    str,
    AfterValidator(_name),
    WithJsonSchema({"type": "string", "pattern": r"^[^\s./\\]+$", "maxLength": LONGEST_NAME}),
    Field(description=f"up to {LONGEST_NAME} letters, digits and -"),
]


class _Step(Part):
    """What any step may hold. A member that is not named goes to the connector as it is."""

    model_config = ConfigDict(extra="allow")

    agent: Annotated[
        Maybe[Annotated[int | str, BeforeValidator(_agent)]],
        Field(description="a number among the target's agents, or an agent id"),
    ] = None
    project: Annotated[Maybe[str], Field(description="a text: the folder that the user works in")] = None
    text: Annotated[Maybe[str], Field(description="a text: what the user says")] = None
    reply: Annotated[Maybe[str], Field(description="a text: what the model answers")] = None
    tool: Annotated[Maybe[str], Field(description="a text: the tool that is called")] = None
    arguments: Annotated[Maybe[dict[str, Any]], Field(description="an object: what the tool is given")] = None
    summary: Annotated[Maybe[str], Field(description="a text: what is left of the conversation")] = None
    fault: Annotated[Maybe[dict[str, Any]], Field(description='an object such as {"kind": "reset"}')] = None
    match: Annotated[
        Maybe[dict[str, Any]], Field(description='an object such as {"path": "/api/hooks/*"}: the requests it meets')
    ] = None
    count: Annotated[Maybe[int], Field(description="a whole number: how many requests it meets")] = None
    as_: Annotated[
        Maybe[str], Field(alias="as", description="a text: the name under which later steps know the result")
    ] = None


class _ConnectorStep(_Step):
    session: Annotated[str, Field(description='a name within the scenario such as "s1"')]


class Session(_ConnectorStep):
    """A step that needs nothing but its session."""

    step: Literal["start", "compact", "pre_compaction", "compaction_complete", "resume", "clear", "end"]


class Prompt(_ConnectorStep):
    """The user says something."""

    step: Literal["prompt"]
    text: Annotated[str, Field(description="a text: what the user says")]


class ToolCall(_ConnectorStep):
    """The model calls a tool."""

    step: Literal["tool"]
    tool: Annotated[str, Field(description="a text: the tool that is called")]


class Fault(_Step):
    """The recorder switches a fault on."""

    step: Literal["fault"]
    fault: Annotated[dict[str, Any], Field(description='an object such as {"kind": "reset"}')]


class Kit(_Step):
    """A step that the kit takes by itself."""

    step: Literal["fault_off", "restart_daemon"]


Step = Annotated[Session | Prompt | ToolCall | Fault | Kit, Field(discriminator="step")]


class ScenarioDocument(Document):
    """An ordered list of steps. What else a file says, such as the seed of a generated session, changes nothing."""

    model_config = ConfigDict(title="Scenario", extra="ignore")
    schema_file: ClassVar[str] = "scenario/signet-scenario.schema.json"

    name: Name
    title: Annotated[Maybe[str], Field(description="a text: what the scenario shows")] = None
    env: Annotated[
        dict[str, str],
        Field(description='such as {"SIGNET_BYPASS": "1"}: what is added to the environment of the connector'),
    ] = Field(default_factory=dict)
    needs: Annotated[
        Items[str],
        Field(description='such as ["secrets-exec"]: operations that a connector must declare for it to make sense'),
    ] = ()
    steps: Annotated[Items[Step], Field(min_length=1, description='such as [{"step": "start", "session": "s1"}]')]


class ScenarioList(Document):
    """Several scenarios in one file."""

    model_config = ConfigDict(title="Scenarios", extra="ignore")
    schema_file: ClassVar[str] = "scenario/signet-scenarios.schema.json"

    scenarios: Items[ScenarioDocument]
