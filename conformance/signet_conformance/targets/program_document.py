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
    """Whether the installer gets the daemon's address, which an installer that calls the daemon needs."""
    names_agent: bool = False
    """Whether the files that the installer writes name one agent, so that it has to run again for another agent."""
    place: Maybe[Text] = None
    """a path in the home: where the program loads the connector's file from"""
    then: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """JSON files below the home, each with the value that is merged into it after the installer has run."""


class ToolSearch(Part):
    """How the model asks the program for a tool that the program names, but does not offer yet."""

    tool: Text
    arguments: dict[str, Any]
    """The arguments of that tool; `{tool}` is replaced by the name of the wanted tool."""


class Observer(Part):
    """A plugin of the kit, beside the connector, that writes down the events that the program sends to its plugins."""

    module: Annotated[Text, Field(pattern=r"^[a-z_]+\.(mjs|py)$")]
    """the plugin's file in drivers/hosts/observers"""
    place: Text
    """a path in the home: where the program loads the plugin from"""
    beside: dict[str, Any] = Field(default_factory=dict)
    """Path below the home to a file without which the program loads no plugins: a JSON value, or a text."""
    events: Items[Text]
    """The events or hooks that the plugin registers for."""
    rows: Items[Text] = ()
    """Events that occur once for each piece, such as of a stream: only the first of a series is written down."""
    kinds: Items[Text] = ()
    """Members whose value distinguishes kinds of an event, such as "reason"."""
    performed_as: dict[StepName, StepName | None] = Field(default_factory=dict)
    """Step to the step as which the program performs it in the way it is driven; null if it does not perform it."""
    starts_with_first_words: bool = False
    """true if a session begins only with the first input of its user, even if that is the command that clears it"""


class Settles(Part):
    """The connector's log lines about losing its daemon and finding it again.

    If the connector reports a daemon as lost that listens, its first session waits until the connector has found
    it.
    """

    lacks: Text
    has: Text
    at_most_s: Annotated[float, Field(ge=0)]
    """how many seconds the session waits at most"""


class Variation(Part):
    """Settings that only some releases need: from `since` on, and before `before`."""

    since: Maybe[Text] = None
    """the first release that needs it"""
    before: Maybe[Text] = None
    """the first release that no longer needs it"""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """JSON files below the home, each with the value that is merged into it."""

    def holds_for(self, release: str) -> bool:
        """Whether it applies to a release."""
        since = self.since is None or numbers(self.since) <= numbers(release)
        return since and (self.before is None or numbers(release) < numbers(self.before))


class ProgramDocument(Document):
    """One program: how it is installed, where its settings are, how it gets its model, what drives it.

    Commands, settings and environment may contain placeholders: `{node}`, `{python}` (programs of this machine),
    `{packages}` (the folder of installed packages), `{bin}` (their programs), `{home}`, `{model}` (the model's
    address), `{daemon}` (the daemon's address), `{connector}` (the folder of the connector's package) and
    `{nowhere}` (a server that answers nothing, for registries that the program must not ask). A list entry with
    `{agent}` is repeated for each agent that the target declares.
    """

    schema_file: ClassVar[str] = "program/signet-program-1.schema.json"

    format: Literal["signet-program/1"]
    name: Text
    title: Text
    registry: Literal["npm", "pypi"]
    package: Text
    beside: Items[Text] = ()
    """Other packages that are installed with the program."""
    node: Maybe[Text] = None
    """the release of node that is installed with the program and runs it"""
    after_install: Items[Words] = ()
    """Commands that make the installed package run."""
    checked: Annotated[Items[Checked], Field(min_length=1)]
    """Releases with which the kit was tried, newest first."""
    command: Words
    speaks: Speaks
    """the protocol between the kit and the program"""
    connector: ConnectorSetup
    settings: dict[str, Any] = Field(default_factory=dict)
    """Path below the home to a file that tells the program its model: a JSON value, or a text."""
    varies: Items[Variation] = ()
    """Settings that only some releases need."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables of the program's environment, beside home, daemon and path."""
    observer: Maybe[Observer] = None
    """the plugin that writes down the events that plugins get; not needed for hooks that run as commands"""
    user_folders: Items[Text]
    """Folders in a user's home that belong to the program: runs must not change them."""
    beside_the_talk: Items[dict[str, Any]] = ()
    """Rules of the scripted model for the requests that the program makes beside the conversation."""
    settles: Maybe[Settles] = None
    """for a program that runs as a server: the log lines that say when the connector has its daemon"""
    asks: dict[str, Text] = Field(default_factory=dict)
    """Hosts that the program calls through a proxy in spite of its settings, each with the reason: the proxy refuses.
    """
    tool_prefix: str = ""
    """the prefix that the program gives to the name of a memory server's tool"""
    search: Maybe[ToolSearch] = None
    """the tool by which the model loads tools of which it gets only the names at first"""
    cannot: dict[StepName, Text] = Field(default_factory=dict)
    """Steps that the program performs only with a user at a screen, each with the reason."""
    cannot_call: dict[Text, Text] = Field(default_factory=dict)
    """Tools of the program itself that its model does not call here, each with the reason."""
    notes: Items[str] = ()
    """Facts about how the program is driven that a reader of its verdicts should know; each run reports them as
    remarks.
    """
