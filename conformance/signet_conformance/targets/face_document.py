"""A host face as a document: signet-face/1."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from signet_conformance.files.documents import (
    DistinctItems,
    Document,
    Items,
    Maybe,
    Part,
    Seconds,
    Text,
    refusal,
    with_schema_member,
)
from signet_conformance.targets.face_parts import AnswerPlaces, Current, Registry, Texts

_WITH_SETTINGS = ("timeout_unit_s", "default_timeout_s", "mcp", "constants", "matchers", "events", "steps", "turn_end")
"""Members that a face of command hooks needs beside `settings`."""
_ACTIONS = ("event", "next_turn", "quit", "say", "model", "call", "renew")
_ACTION = (
    "one of {event}, {next_turn}, {quit}, {say}, {model}, {call}, {renew}; other members beside event, "
    "next_turn and quit are members of its JSON"
)

Step = Literal[
    "start",
    "prompt",
    "tool",
    "compact",
    "pre_compaction",
    "compaction_complete",
    "clear",
    "resume",
    "end",
    "fork",
    "reopen",
    "restart_host",
]
Blocking = Literal["status", "decision", "continue", "permission"]


class Fire(Part):
    """The harness fires an event; the other members are those of the event's JSON."""

    model_config = ConfigDict(extra="allow")

    event: Text


class FireNextTurn(Part):
    """The harness fires an event when the next turn begins, before the turn's own events.

    A later action of this kind replaces it.
    """

    model_config = ConfigDict(extra="allow")

    next_turn: Text


class Quit(Part):
    """The harness ends and fires an event for the session, and for each session that a clear left behind."""

    model_config = ConfigDict(extra="allow")

    quit: Text


class Say(Part):
    """The transcript gets what the user or the assistant says in the step, or the summary of a compaction."""

    say: Literal["user", "assistant", "summary"]


class AskModel(Part):
    """The harness calls its model."""

    model: Literal[True]


class CallTool(Part):
    """The harness calls the tool of the step."""

    call: Literal[True]


class Renew(Part):
    """The session begins anew."""

    renew: Literal[True]


def _kind(action: Any) -> str | None:
    members = action if isinstance(action, dict) else {}
    return next((kind for kind in _ACTIONS if kind in members), None)


Action = Annotated[
    Annotated[Fire, Tag("event")]
    | Annotated[FireNextTurn, Tag("next_turn")]
    | Annotated[Quit, Tag("quit")]
    | Annotated[Say, Tag("say")]
    | Annotated[AskModel, Tag("model")]
    | Annotated[CallTool, Tag("call")]
    | Annotated[Renew, Tag("renew")],
    Discriminator(
        _kind,
        custom_error_type="refused",
        custom_error_message="{told}",
        custom_error_context={"told": "is not an action", "remedy": _ACTION},
    ),
    Field(description=_ACTION),
]


class HostMessage(Part):
    """A message that the host itself adds to the conversation, in the user's place."""

    role: Text
    text: Text


class MemoryServer(Part):
    """Where the harness finds the memory server."""

    file: Text
    members: Texts
    enabled_tools: Maybe[Text] = None
    """the member beside the command that lists the only tools that the model gets"""
    disabled_tools: Maybe[Text] = None
    """the member beside the command that lists tools that the model does not get"""
    no_text: Maybe[Text] = None
    """the harness's message about a command that is not a text; left out if it accepts a list"""


class ProgramAnswer(Part):
    """An answer of the harness's program to a command line."""

    asked: Items[str]
    """a list of words such as ["plugin", "add", "*"]; * is any word"""
    says: str = ""
    """a text: what it prints"""
    status: Annotated[int, Field(ge=0, le=255)] = 0
    """a whole number: its exit status"""
    does: Maybe[Literal["add_plugin", "remove_plugin"]] = None
    """The action on the plugin that the last word names as NAME@MARKETPLACE."""


class StubProgram(Part):
    """The harness's own program, which installers call: a stub on PATH answers for it."""

    name: Annotated[str, Field(pattern="^[a-z][a-z0-9-]*$")]
    """the name of the program on PATH"""
    answers: Items[ProgramAnswer] = ()
    """The first answer that fits the command line counts; any other command line ends with status 2."""


class PluginPlaces(Part):
    """Where the harness keeps plugins that bring hooks and memory servers: paths below the home, and in a plugin."""

    settings: Text
    """a TOML file below the home with the tables marketplaces and plugins"""
    cache: Text
    """a folder below the home: MARKETPLACE/NAME/VERSION are in it"""
    marketplace: Text
    """the file of a marketplace that lists its plugins"""
    manifest: Text
    """the manifest of a plugin"""
    hooks: Text
    """the file of hooks of a plugin whose manifest names none"""
    mcpServers: Text  # noqa: N815 - the name of the member in manifests
    """the file of memory servers of a plugin whose manifest names none"""


class LaterRelease(Part):
    """A release of the harness after the one that is played."""

    release: Text
    known: Text
    """a sentence: what is known of it, or that nothing is"""


def _add_dependencies(schema: dict[str, Any]) -> None:
    with_schema_member(schema)
    schema["dependentRequired"] = {"settings": list(_WITH_SETTINGS)}


class FaceDocument(Document):
    """What one release of a harness does with a connector: the events it fires, in which order, with which members.

    A host program of the kit plays it; what a driver needs depends on the kind of harness (settings: hooks run as
    commands; code: plugins for node or bun; calls: Python providers).
    """

    model_config = ConfigDict(title="Host face (signet-face/1)", json_schema_extra=_add_dependencies)
    schema_file: ClassVar[str] = "face/signet-face-1.schema.json"

    format: Literal["signet-face/1"]
    harness: Text
    """The harness that is played."""
    version: Text
    """a text such as 2.1.197: the release of the harness"""
    checked: Text
    """a sentence: what the face was checked against, or that it was not"""
    notes: Texts = ()
    unverified: Texts = ()
    """Behaviour that was never observed and that the face had to assume: one sentence each."""
    newer: Items[LaterRelease] = ()
    """Releases after this one that no face of the kit plays, with what is known of each."""

    current: Maybe[Current] = None
    """When people used this release, or others that treat connectors alike."""
    registry: Maybe[Registry] = None
    """Which events, tools and exports of connectors the harness accepts, refuses or ignores."""
    code: Maybe[Annotated[str, Field(pattern=r"^[a-z_]+\.mjs$")]] = None
    """a file name: the module of the host program that plays the harness"""
    events: dict[str, Texts] = Field(default_factory=dict)
    """a table of lists: event to the members that the event has"""
    sometimes: dict[str, Texts] = Field(default_factory=dict)
    """Event to the members that it has only in some ways of running the harness."""
    hooks: dict[str, Texts] = Field(default_factory=dict)
    """a table of lists: hook to the members of its input"""
    unplayed: Texts = ()
    """Events that the harness sends to plugins, but that this face does not play."""
    irregular: Texts = ()
    """Events whose number and place cannot be predicted: their order is not compared."""
    beside_turns: Texts = ()
    """Events that occur once more in a session because of work that its turns do not wait for, such as a title: the
    place of that occurrence is not compared.
    """
    interactive: Texts = ()
    """Events that occur only with a user at a screen, and not in the way in which the kit drives the program. A hook's
    event with a reason, such as SessionEnd prompt_input_exit, has another reason there.
    """
    budgets_ms: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    """Event to the number of milliseconds after which the harness continues without waiting for its handlers."""
    registration_modes: Maybe[Annotated[Items[str], Field(min_length=1)]] = None
    """The modes in which the harness registers a plugin, in order; runs call the handlers of the last mode."""
    registrars: Texts = ()
    runtime: Texts = ()
    """The programs that can run the harness's plugins, the best first (default: node)."""
    early_agent_start: Maybe[bool] = None
    tools_by_manifest: bool = False
    """true if the harness takes only the tools that the plugin's manifest names"""
    session_files: Maybe[Literal["jsonl", "sqlite"]] = None
    """The form in which a session's messages are stored, as the harness tells the plugin."""
    port: Maybe[Annotated[int, Field(ge=1, le=65535)]] = None
    session_folder: Maybe[str] = None
    tools: Maybe[bool] = None
    resumes_anew: bool = False
    """true if the host resumes a session in another process than the one that began it"""
    resumes_unused: bool = True
    """false if a session in which nothing was said cannot be resumed"""
    starts_a_turn_before_its_context: bool = False
    """true if the turn after that of a tool starts before its messages are handed to plugins"""
    after_compaction: Maybe[HostMessage] = None
    """The message by which the host lets its model continue after a compaction that the user did not ask for."""
    changes_id: dict[Step, Texts] = Field(default_factory=dict)
    """Step in which the harness gives a session another id, to the events by which a connector learns of it."""
    ends_untold: Items[Step] = ()
    """Steps in which a session ends for the user, without any event that reports the end to a connector."""
    forks_by: Maybe[Literal["session_fork", "session_branch"]] = None
    """the event that occurs instead of replaces_by if the user continues in a copy of the conversation"""
    replaces_by: Maybe[Literal["session_switch", "session_shutdown"]] = None
    ends_on_stray_errors: bool = False
    """true if an uncaught error of a plugin, in a promise or timer, ends the harness"""
    attachments: Items[Literal["file", "image"]] = ()
    """The attachments to a prompt that the host plays."""
    channels: dict[str, str] = Field(default_factory=dict)
    """Channel to the form in which plugins get a user's text from it: {text} is replaced by the text, {stamp} by the
    time.
    """
    input_answers: Maybe[Literal["action", "members"]] = None
    """How a handler of the event input says that it replaces the user's words, or has dealt with them: by the member
    action, with text beside it, or by text and handled alone.
    """
    awaits_compaction: bool = False
    """true if the harness waits for the hook before a compaction, and asks its model only then"""
    starts_of_a_replaced_session: Maybe[Annotated[int, Field(ge=1)]] = None
    before_compaction: Texts = ()

    calls: Maybe[Texts] = None
    """a list of texts: the methods of a provider that the harness calls"""
    own_tools: Texts = ()
    """a list of texts: tools of the harness itself whose calls a connector can observe"""

    settings: Maybe[Text] = None
    """a path below the home folder: the file that holds the hooks"""
    mcp: Maybe[MemoryServer] = None
    """a table {file, members}: where the harness finds the memory server"""
    others: dict[str, Any] = Field(default_factory=dict)
    """Files of the harness by their paths below the home, with entries of other tools: an installer changes only its
    own entries.
    """
    program: Maybe[StubProgram] = None
    """a table {name, answers}: the harness's own program, which installers call"""
    plugins: Maybe[PluginPlaces] = None
    """a table of paths: where the harness keeps plugins that bring hooks"""
    transcript: Maybe[Literal["claude", "codex"]] = None
    timeout_unit_s: Maybe[Seconds] = None
    """a number: the seconds that a hook's timeout of 1 means"""
    default_timeout_s: Maybe[Seconds] = None
    """a number of seconds above 0"""
    project_variables: Texts = ()
    environment: Maybe[Texts] = None
    """The only variables that a hook inherits, if the harness clears the others."""
    server_environment: Maybe[Texts] = None
    """The only variables that a memory server inherits, if the harness clears the others."""
    hook_file: Maybe[dict[str, Any]] = None
    """A JSON Schema of the files of hooks that the harness accepts: it refuses any other file, and runs no hook of it.
    Left out if its parser is not known.
    """
    bracketed_output_is_json: bool = False
    """true if output is discarded that begins with [ or {, but is not JSON"""
    blocked_by: dict[str, DistinctItems[Blocking]] = Field(default_factory=dict)
    """a table of lists: event to the ways in which its hook can block the harness. status: exit status 2; decision,
    continue, permission: exit status 0 and a JSON object in which decision is block, continue is false,
    hookSpecificOutput.permissionDecision is deny
    """
    blocking_needs_reason: bool = False
    """true if status 2 blocks only with text on standard error, and a decision only with a reason"""
    constants: dict[str, Any] = Field(default_factory=dict)
    """Members that have one and the same value in every hook's JSON."""
    names: dict[str, Text] = Field(default_factory=dict)
    """Member of a hook's JSON to the kit's name for it, where the harness has another one, such as
    {"conversation_id": "session_id"}. The kit's names: session_id, transcript_path, cwd, hook_event_name, prompt,
    turn_id, last_assistant_message, compact_summary; of a tool tool_name, tool_input, tool_use_id, tool_call_id,
    tool_output, tool_response, duration_ms.
    """
    tool_prefix: str = ""
    """The prefix of the name of a memory server's tool in the JSON of a hook."""
    tool_response: Literal["result", "content"] = "result"
    """The part of a tool's answer that a hook gets: the result of the call, or its content alone."""
    matchers: dict[str, str] = Field(default_factory=dict)
    """Event to the member that a hook's matcher is compared with."""
    steps: dict[Step, Items[Action]] = Field(default_factory=dict)
    """a table of lists: step of a scenario to what the harness does"""
    turn_end: Items[Action] = ()
    """The actions of the harness when a turn has ended."""
    answers: Maybe[AnswerPlaces] = None
    """How the connector's answers reach the model. Left out if that is not known: then what reaches the model is not
    judged.
    """

    @property
    def tells_plugins(self) -> bool:
        """Whether the harness calls plugins that it has loaded, rather than commands."""
        return self.code is not None or self.calls is not None

    @model_validator(mode="after")
    def _demand_members_beside_settings(self) -> Self:
        lacking = [name for name in _WITH_SETTINGS if name not in self.model_fields_set]
        if self.settings is not None and lacking:
            raise refusal(f"has settings and lacks {', '.join(lacking)}", "add what a harness that runs commands needs")
        return self
