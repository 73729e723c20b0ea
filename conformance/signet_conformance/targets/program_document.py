"""The profile of a program that people run and the kit can launch: signet-program/1."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from signet_conformance.files.documents import Document, Items, Maybe, Part, Text
from signet_conformance.targets.releases import numbers

Speaks = Literal["pi-rpc", "claude-stream", "codex-app-server", "opencode-server", "hermes-acp", "openclaw-acp"]
StepName = Literal["start", "prompt", "tool", "compact", "clear", "resume", "end"]
Words = Annotated[
    Items[Text], Field(description='a list of words such as ["{node}", "{packages}/pi/cli.js"]: a command')
]


class FilePlace(Part):
    """A place where a file may be."""

    path: Text
    """a path such as dist/index.js, below the package or below this folder and those above it"""
    package: Maybe[Text] = None
    """the name in a package.json"""


class Checked(Part):
    """A release with which the kit was tried."""

    release: Text
    note: Maybe[str] = None


class ConnectorSetup(Part):
    """How a connector gets into the program: by its own installer, else by copying its file."""

    installer: Items[FilePlace] = ()
    """Places of the connector's own installer."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options that the connector's own setup passes to its installer."""
    told_daemon: bool = False
    """Whether its installer gets the daemon's address: one that calls the daemon needs it."""
    names_agent: bool = False
    """Whether what its installer leaves names one agent: another agent needs it run again."""
    place: Maybe[Text] = None
    """a path in the home: where the program loads a connector's file from"""
    then: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """JSON files below the home, and what is merged into each when the installer has run."""


class ToolSearch(Part):
    """How the model asks the program for a tool that it names and does not offer yet."""

    tool: Text
    arguments: dict[str, Any]
    """Its arguments; `{tool}` is replaced by the name of the wanted tool."""


class Observer(Part):
    """A plugin of the kit's own, beside the connector, that writes down what the program tells its plugins."""

    module: Annotated[Text, Field(pattern=r"^[a-z_]+\.(mjs|py)$")]
    """its file in drivers/hosts/observers"""
    place: Text
    """a path in the home: where the program loads it from"""
    beside: dict[str, Any] = Field(default_factory=dict)
    """Files below the home without which the program loads none: a JSON value, or a text."""
    events: Items[Text]
    """The events, or hooks, that it takes part in."""
    rows: Items[Text] = ()
    """Events that come once a piece of something: of a row the first is written down."""
    kinds: Items[Text] = ()
    """Members whose value tells one kind of an event from another, such as "reason"."""
    performed_as: dict[StepName, StepName | None] = Field(default_factory=dict)
    """Steps that the program performs as another one in the way it is driven, or as none: null."""
    starts_with_first_words: bool = False
    """true where a session that is opened begins with what its user types first, be it the command that clears it"""


class Settles(Part):
    """The connector's log lines about losing its daemon and having it again.

    If the connector reports a lost daemon that listens, its first session waits until the connector has it.
    """

    lacks: Text
    has: Text
    at_most_s: Annotated[float, Field(ge=0)]
    """seconds after which the session waits no longer"""


class Variation(Part):
    """What only some releases need: from `since` on, and before `before`."""

    since: Maybe[Text] = None
    """the first release that has it"""
    before: Maybe[Text] = None
    """the first release that has it no more"""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """JSON files below the home, and what is merged into each."""

    def holds_for(self, release: str) -> bool:
        """Whether it applies to a release."""
        since = self.since is None or numbers(self.since) <= numbers(release)
        return since and (self.before is None or numbers(release) < numbers(self.before))


class ProgramDocument(Document):
    """One program: how it is installed, where its settings are, how it gets its model, what drives it.

    Commands, settings and environment may hold placeholders: `{node}`, `{python}` (programs of this machine),
    `{packages}` (the folder of installed packages), `{bin}` (their programs), `{home}`, `{model}` (the model's
    address), `{daemon}` (the daemon's), `{connector}` (the folder of the connector's package) and `{nowhere}` (a
    server that has nothing, for registries that must not be asked). A list entry with `{agent}` is repeated for each
    agent that the target declares.
    """

    schema_file: ClassVar[str] = "program/signet-program-1.schema.json"

    format: Literal["signet-program/1"]
    name: Text
    title: Text
    registry: Literal["npm", "pypi"]
    package: Text
    beside: Items[Text] = ()
    """Further packages that are installed with it."""
    node: Maybe[Text] = None
    """the release of node that is installed with it and runs it"""
    after_install: Items[Words] = ()
    """Commands that make the installed package run."""
    checked: Annotated[Items[Checked], Field(min_length=1)]
    """Releases it was tried with, newest first."""
    command: Words
    speaks: Speaks
    """what the kit speaks with it"""
    connector: ConnectorSetup
    settings: dict[str, Any] = Field(default_factory=dict)
    """Files below the home that tell it its model: a JSON value, or a text."""
    varies: Items[Variation] = ()
    """What only some releases need."""
    env: dict[str, str] = Field(default_factory=dict)
    """Its environment beside home, daemon and path."""
    observer: Maybe[Observer] = None
    """what writes down what a plugin is told; not needed for hooks that run as commands"""
    user_folders: Items[Text]
    """Folders of a user's home that it keeps for itself: those must not change."""
    beside_the_talk: Items[dict[str, Any]] = ()
    """Rules of the scripted model for what it asks beside the talk."""
    settles: Maybe[Settles] = None
    """what tells in a program that serves when the connector has its daemon"""
    asks: dict[str, Text] = Field(default_factory=dict)
    """Hosts that it asks a proxy for in spite of its settings, and why: the proxy refuses."""
    tool_prefix: str = ""
    """what it puts before the name of a tool of a memory server"""
    search: Maybe[ToolSearch] = None
    """the tool by which its model gets those that are only named to it at first"""
    cannot: dict[StepName, Text] = Field(default_factory=dict)
    """Steps that it cannot be brought to without a user before it, and why."""
    cannot_call: dict[Text, Text] = Field(default_factory=dict)
    """Tools of its own that its model does not call here, and why."""
    notes: Items[str] = ()
    """Facts that a reader of its verdicts should know of how it is driven: each run remarks on them."""
