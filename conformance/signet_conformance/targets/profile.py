"""Target profiles and repository settings as documents: signet-target/1, and the tables of `[targets]`."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from signet_conformance.contract import document
from signet_conformance.errors import TargetError, printable
from signet_conformance.facts.steps import TOOLS
from signet_conformance.files.documents import (
    DistinctItems,
    Document,
    Items,
    Maybe,
    Part,
    Seconds,
    Telling,
    Text,
    refusal,
    shown_value,
)
from signet_conformance.targets.kinds import KINDS
from signet_conformance.targets.program_document import FilePlace
from signet_conformance.trace import BOUNDS

Processes = Literal["one", "agent", "session"]
Method = Literal["onSessionStart", "onUserPromptSubmit", "onSessionEnd", "onPreCompaction", "onCompactionComplete"]
NODE = "node"


def _known_operation(name: str) -> str:
    operations = sorted(document("operations.json")["operations"])
    if name not in operations:
        near = difflib.get_close_matches(name, operations, n=2) or operations
        raise refusal(
            f"the contract has no operation {printable(name, 60)!r}", f"did you mean {' or '.join(near[:5])}?"
        )
    return name


def _one_or_more(names: Any) -> Any:
    return [names] if isinstance(names, str) else names


def _known_bound(name: str) -> str:
    if name not in BOUNDS:
        raise refusal(f"{printable(name, 60)!r} is not a bound", f"one of {', '.join(BOUNDS)}")
    return name


def _own_variable(name: str) -> str:
    if name in ("SIGNET_DAEMON_URL", "SIGNET_TOKEN"):
        raise refusal(f"sets {name}, which each run sets to its own value", f"take {name} out")
    return name


_NAME = "^[A-Za-z0-9][A-Za-z0-9._-]*$"


def _target_name(name: str) -> str:
    if not re.fullmatch(_NAME, name):
        raise refusal(
            f"{shown_value(name)} is not a valid target name",
            "use letters, digits, -, _ and . only, such as [targets.mine]",
        )
    return name


def _known_tool(name: str) -> str:
    near = difflib.get_close_matches(name, TOOLS, n=1, cutoff=0.8)
    if near and name not in TOOLS:
        raise refusal(f"the scenarios call no tool {printable(name, 60)!r}", f"did you mean {near[0]}?")
    return name


def _known_kind(name: str) -> str:
    if name not in KINDS:
        raise refusal(f"is {shown_value(name)}", f"one of {', '.join(KINDS)}")
    return name


DriverKind = Annotated[str, AfterValidator(_known_kind), WithJsonSchema({"enum": list(KINDS), "type": "string"})]
Operation = Annotated[str, AfterValidator(_known_operation), WithJsonSchema({"type": "string"})]
Bound = Annotated[str, AfterValidator(_known_bound), WithJsonSchema({"enum": list(BOUNDS), "type": "string"})]
Runtime = Annotated[
    Items[Text],
    Field(min_length=1),
    BeforeValidator(_one_or_more),
    WithJsonSchema(
        {"type": ["string", "array"], "minLength": 1, "minItems": 1, "items": {"type": "string", "minLength": 1}}
    ),
]


class TargetDeclarations(Part):
    """Facts that the connector declares about itself, because recordings cannot show them."""

    agents: DistinctItems[Telling] = ()
    """a list of agent ids such as ["atlas-agent", "beacon-agent"]"""
    harness: Maybe[Telling] = None
    """a text: the name that the connector sends as its harness"""
    bounds_s: dict[Bound, Annotated[Seconds, Field(le=3600)]] = Field(default_factory=dict)
    """a table of seconds such as {start = 15.0, prompt = 5.0}"""
    capabilities: Maybe[DistinctItems[Operation]] = None
    """a list of operations such as ["session-start", "session-end"]; docs/add-a-connector.md lists them"""
    token: bool = False
    """true if runs give the connector a token, which it then has to send"""
    prompt_chars: Maybe[Annotated[int, Field(ge=1)]] = None
    """a whole number of characters, to which the connector cuts the user's text"""
    bypass: Maybe[Literal["connector", "application"]] = None
    """"connector" or "application": which of them applies the user's bypass (default: the connector)"""
    recovers_s: Maybe[Annotated[float, Field(ge=0)]] = None
    """a number of seconds: how long the connector may stay silent after an outage (default: 0)"""


class Settable(Part):
    """The members of a profile that a repository's settings may override."""

    driver: Maybe[DriverKind] = None
    """the kind of connector"""
    title: Maybe[Text] = None
    """a few words that say what the connector is"""
    identity: Maybe[Text] = None
    """How the connector takes its agent id, as a sentence."""
    notes: Items[str] = ()
    """Facts that a reader of a verdict should know, as sentences."""
    face: Maybe[Text] = None
    """The release of the harness that is played: the name of one of the kit's faces, or the path of a .json file."""
    released: Maybe[Annotated[str, Field(pattern=r"^20[0-9]{2}-[01][0-9](-[0-3][0-9])?$")]] = None
    """a month or day such as 2026-04-23 on which the connector was released; the kit plays the harness release of that
    time
    """
    processes: Processes = "one"
    """which sessions share a process of the connector: those of the whole run, those of an agent, or none"""
    sessions: Maybe[Annotated[int, Field(ge=0, le=1_000_000)]] = None
    """a whole number such as 20: how many sessions a run generates if its command line does not say; fewer if they are
    slow
    """
    command: Items[str] = ()
    """a list of words such as ["node", "{root}/driver.mjs"]: the command line that is started"""
    url: Maybe[Annotated[str, Field(pattern=r"^(https?://|\{daemon\})")]] = None
    """an address such as http://127.0.0.1:8080 of a server on this machine; {port} is replaced by a free port, {daemon}
    by the recorder's address
    """
    paths: dict[Method, Annotated[str, Field(pattern="^/")]] = Field(default_factory=dict)
    """a table such as {onSessionStart = "/session-start"}: the path that serves each method of the runtime adapter"""
    env: dict[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$"), AfterValidator(_own_variable)], str] = Field(
        default_factory=dict
    )
    """a table of texts such as {SIGNET_ENABLED = "true"}: variables that are added to the connector's environment;
    {root} is replaced by the folder of the settings, {python} by the interpreter that runs the kit
    """
    bypass_env: dict[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")], str] = Field(default_factory=dict)
    """a table such as {SIGNET_BYPASS = "1", SIGNET_ENABLED = "false"}: each documented variable that switches the
    connector's hooks off, with the value that does so (default: SIGNET_BYPASS)
    """
    runtime: Runtime = (NODE,)
    """a list such as ["bun", "node"]: programs that can run the connector's module; the first one found is used
    (default: bun for TypeScript, else what the harness uses for plugins)
    """
    module: Maybe[Text] = None
    """a path: the connector's file; the kit then does not search for it"""
    files: Items[FilePlace] = ()
    """Where the connector's file may be; the first file found is used."""
    build: Maybe[str] = None
    """An instruction: how the file is built, or what the user still has to provide."""
    programs: dict[str, Items[FilePlace]] = Field(default_factory=dict)
    """Name of each program that the connector installs, to the places where it may be."""
    tools: dict[Annotated[str, AfterValidator(_known_tool)], str] = Field(default_factory=dict)
    """a table such as {memory_store = "signet_remember"}: tool of the scenarios to the connector's own name for it"""
    config: Maybe[Text] = None
    """a path: the file of hooks that is used instead of the one that the installer writes"""
    older: Maybe[Text] = None
    """a path: the folder of an older, built release of the connector; its installer runs first when the kit tests an
    upgrade
    """
    plugin_config: Maybe[dict[str, Any]] = None
    """a table: the settings that the harness gives to the plugin"""


class EarlierConnector(Part):
    """What earlier releases of the connector declare instead."""

    before: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")]
    """the first release to which this no longer applies"""
    declared: TargetDeclarations
    """The declarations that differ; the others are those of the releases after it."""
    bypass_env: Maybe[dict[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")], str]] = None
    """The variables that switch its hooks off, if later releases know more of them."""
    undriven: Maybe[Text] = None
    """a sentence: why the kit cannot drive it"""
    notes: Items[str] = ()
    """Facts that a reader of a verdict on it should know, as sentences."""


class FormerInstallation(Part):
    """Files that an older release of the connector left in the user's home, and that later releases read or change."""

    release: Text
    """the release or releases, as the user knows them"""
    files: dict[str, Any]
    """a table: path below the home to the file's content, which is an object for a JSON file and a text for any other
    """


class Profile(Document, Settable):
    """A named connector: its driver, the places of its files, its declarations.

    The kit's own profiles are files of this form. A repository's settings override their members; members of
    `declared` may be at the top level there.
    """

    model_config = ConfigDict(title="Target profile (signet-target/1)")
    schema_file: ClassVar[str] = "target/signet-target-1.schema.json"

    format: Literal["signet-target/1"]
    name: Annotated[str, Field(pattern=_NAME)]
    """a name such as mine: letters, digits, -, _ and ."""
    title: Text
    driver: DriverKind
    declared: TargetDeclarations
    former: Items[FormerInstallation] = ()
    """Files that older releases left; the installer runs over each of them."""
    earlier: Items[EarlierConnector] = ()
    """Earlier releases, the earliest first. If a release is before several of them, all apply; where they differ, the
    earliest.
    """


class OwnTarget(Settable, TargetDeclarations):
    """A repository's settings for one target, with declarations at the top level or below `declared`."""

    declared: Maybe[TargetDeclarations] = None


class SettingsFile(Document):
    """A repository's own settings: signet-conformance.toml, or [tool.signet-conformance] of pyproject.toml."""

    model_config = ConfigDict(title="Settings", extra="ignore")
    schema_file: ClassVar[str] = "settings/signet-settings.schema.json"

    targets: dict[Annotated[str, AfterValidator(_target_name)], OwnTarget] = Field(default_factory=dict)
    """one table for each target, such as [targets.openclaw] with module = "dist/index.js"
    """

    @classmethod
    def place(cls, where: str, pointer: Sequence[str | int]) -> tuple[str, Sequence[str | int]]:
        """The place of the target's table, and the pointer from there to the value."""
        return (f"{where}: targets.{pointer[1]}", pointer[2:]) if len(pointer) > 1 else (where, pointer)


_WORDS: Mapping[str, str] = {"module": "{module}", "files": "{module}", "runtime": "{runtime}"}
"""Settings that a driver program's command must use, with the placeholder for each."""


_FILLED_IN = ("root", "python")
"""The placeholders that `command` and `env` may have."""
_IN_COMMAND = (*_FILLED_IN, "port", "runtime", "module")


def demand_placeholders(profile: Profile, where: str) -> None:
    """Raise TargetError for a misspelt placeholder: the program would get it as text."""
    words: list[tuple[str, str, Sequence[str]]] = [("the command", word, _IN_COMMAND) for word in profile.command]
    words += [(f"env.{name}", value, _FILLED_IN) for name, value in profile.env.items()]
    for place, word, known in words:
        for name in re.findall(r"(?<!\$)\{(\w+)\}", word):
            near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.75)
            if near and name not in known:
                raise TargetError(
                    f"{{{printable(name, 40)}}} of {place} stands for nothing",
                    where=where,
                    remedy=f"did you mean {{{near[0]}}}?",
                )


def _as_json(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False), 80)


def demand_one_place(own: Mapping[str, Any], where: str) -> None:
    """Raise TargetError for a declaration with one value at the top level and another below `declared`."""
    for name, value in own.get("declared", {}).items():
        if own.get(name, value) != value:
            raise TargetError(
                f"{name} is {_as_json(own[name])}, and declared.{name} is {_as_json(value)}",
                where=where,
                remedy=f"keep one of the two: {name}, or declared.{name}",
            )


def demand_read(profile: Profile, own: Mapping[str, Any], where: str) -> None:
    """Raise TargetError for the first of a repository's `own` settings that the profile's driver ignores."""
    kind = KINDS[profile.driver]
    every = frozenset().union(*(other.reads for other in KINDS.values()))
    for name in (name for name in own if name in every):
        if name not in kind.reads:
            others = ", ".join(other.name for other in KINDS.values() if name in other.reads)
            raise TargetError(
                f"the driver {kind.name} does not read {name}",
                where=where,
                remedy=f'take {name} out, or set driver = "…" to one that reads it: {others}',
            )
        if kind.own_program and name in _WORDS and _WORDS[name] not in profile.command:
            raise TargetError(
                f"the command does not use {name}",
                where=where,
                remedy=f'take {name} out, or put "{_WORDS[name]}" among the words of command',
            )
        for instead, unread in kind.instead.items():
            if instead in profile.model_fields_set and name in unread:
                raise TargetError(
                    f"the driver {kind.name} does not read {name} beside {instead}",
                    where=where,
                    remedy=f"keep one of the two: {instead}, or {name}",
                )
