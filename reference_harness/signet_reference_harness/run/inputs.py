"""Checks the options of a task, and makes the plan of its session before anything is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.daemon_client.routing import routing_table
from signet_reference_harness.documents import read_file
from signet_reference_harness.errors import ConfigError, os_errors
from signet_reference_harness.identity import KEY_PREFIX, SessionIdentity
from signet_reference_harness.mcp_servers.settings import McpSettings, read_mcp_settings
from signet_reference_harness.providers import CompletionOptions, Provider, settings
from signet_reference_harness.providers.agent_file import read_agent_file
from signet_reference_harness.providers.settings import ProviderSettings
from signet_reference_harness.run.run_journal import FINAL, RunRecord
from signet_reference_harness.run.session_file import StoredSession, path_of, read_session, sessions_of
from signet_reference_harness.session.events import OutputFormat
from signet_reference_harness.session.host import SessionHost, agent_in
from signet_reference_harness.session.turn import MOST_ROUNDS
from signet_reference_harness.tools import DaemonTool, Tool, ToolSource
from signet_reference_harness.tools.built_in import BUILT_IN
from signet_reference_harness.tools.files import FILE_TOOLS
from signet_reference_harness.tools.permission import Permissions, patterns_of
from signet_reference_harness.tools.registry import installed_tools, tool_of

LARGEST_PROMPT: Final = 4 * 1024 * 1024
"""In bytes. The daemon refuses bodies of more than 10 MiB, and JSON may need six bytes for a character."""
RESEARCH: Final = ("memory_search",)
"""Tools that run on the prompt before the model sees it."""
STATE_VARIABLE: Final = "SIGNET_HARNESS_STATE_DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(settings.ProviderOptions):
    """The options of `signet-harness run` as the user gave them; None for an option left out."""

    words: tuple[str, ...] = ()
    prompt: str | None = None
    prompt_file: Path | None = None
    stdin: bool = False
    cwd: Path | None = None
    session: str | None = None
    run_id: str | None = None
    resume: str | None = None
    sessions_dir: Path | None = None
    state_dir: Path | None = None
    summary: Path | None = None
    timeout_ms: int | None = None
    output_format: OutputFormat = "text"
    max_rounds: int | None = None
    context_budget: int | None = None
    tools: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    read_only: bool = False
    quiet: bool = False
    without_memory: bool = False
    explain: bool = False
    compare_memory: bool = False
    agent: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Folders:
    """The folder in which a task works, and those in which it stores its state; all exist."""

    project: Path
    state: Path
    sessions: Path
    open_sessions: Path

    @classmethod
    def from_options(cls, options: Options, environ: Mapping[str, str]) -> Folders:
        """The folders that options and environment name; the harness's own are created. Raises ConfigError."""
        project = Path.cwd() if options.cwd is None else options.cwd
        if not os.path.isdir(project):  # noqa: PTH112 - it answers for names that are too long, too
            raise ConfigError(f"--cwd {project}: is not a folder", remedy="name the folder of the project")
        state = state_folder(options, environ)
        sessions = _make((options.sessions_dir or state / "sessions").absolute(), "--sessions-dir")
        return cls(project.resolve(), state, sessions, _make(state / "open-sessions"))


def state_folder(options: Options, environ: Mapping[str, str]) -> Path:
    """The folder of the harness's state, created if it does not exist. Raises ConfigError."""
    return _make((options.state_dir or _state(environ)).absolute())


def runs_folder(state: Path) -> Path:
    """The folder of the runs within that of the state, created if it does not exist. Raises ConfigError."""
    return _make(state / "runs")


def options_of_run(options: Options, recorded: RunRecord) -> Options:
    """The options of a run that is resumed, with its prompt, session, agent and project. Raises ConfigError."""
    if not Path(recorded.project).is_dir():
        raise ConfigError(
            f"--resume {recorded.run}: its project is gone: {recorded.project}",
            remedy="put the folder back, or begin another run",
        )
    return replace(
        options,
        prompt=recorded.prompt,
        session=recorded.session,
        agent=recorded.agent,
        cwd=Path(recorded.project),
        sessions_dir=Path(recorded.sessions),
    )


def check_resume(options: Options) -> None:
    """Raise ConfigError for an option that --resume excludes."""
    given = {
        "a prompt": options.words or options.prompt or options.prompt_file or options.stdin,
        "--session": options.session,
        "--sessions-dir": options.sessions_dir,
        "--agent": options.agent,
        "--cwd": options.cwd,
        "--run-id": options.run_id,
        "--continue": options.goes_on,
    }
    named = [name for name, value in given.items() if value]
    if named:
        raise ConfigError(
            f"--resume {options.resume}: the run has its own: {', '.join(named)}",
            remedy="leave that out, or begin a new run without --resume",
        )


def check_unchanged(recorded: RunRecord, stored: StoredSession | None) -> None:
    """Raise ConfigError if the run was cancelled, or if its session has had other turns since it began.

    Remains of the run's own turn are removed from `stored`.
    """
    run, turns = recorded.run, 0
    if stored is not None:
        if stored.runs.get(run) == "cancelled":
            raise ConfigError(f"--resume {run}: the run {FINAL['cancelled']}", remedy="begin another run")
        stored.take_back(run)
        turns = len(stored.turns)
    if turns != recorded.turns:
        raise ConfigError(
            f"--resume {run}: its session {recorded.session} has changed since the run began: it had "
            f"{recorded.turns // 2} turns then, and has {turns // 2} now",
            remedy=f"begin another run, with --session {recorded.session} to continue that session",
        )


def read_prompt(options: Options, stdin: Callable[[], BinaryIO]) -> str:
    """The prompt. Raises ConfigError for no prompt, for several, and for one that cannot be read."""
    given = {
        "the argument": options.words or None,
        "--prompt": options.prompt,
        "--prompt-file": options.prompt_file,
        "--stdin": options.stdin or None,
    }
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        problem = "no prompt is given" if not named else f"there are {len(named)} prompts: {' and '.join(named)}"
        raise ConfigError(problem, remedy="give one: as an argument, or by --prompt, --prompt-file or --stdin")
    if options.prompt_file is not None:
        where = f"--prompt-file {options.prompt_file}"
        remedy = "name a file of UTF-8 text"
        data = read_file(options.prompt_file, LARGEST_PROMPT, where=where, remedy=remedy, smaller="shorten it")
        text = _decode(data, where)
    elif options.stdin:
        text = _decode(stdin().read(LARGEST_PROMPT + 1), "--stdin")
    else:
        text = options.prompt if options.prompt is not None else " ".join(options.words)
    try:
        # Python decodes arguments by the locale, which may not be UTF-8; the user typed the bytes.
        text = os.fsencode(text).decode() if options.prompt_file is None and not options.stdin else text
        size = len(text.encode())
    except UnicodeError:
        raise ConfigError(f"{named[0]}: the prompt is not valid UTF-8", remedy="save it as UTF-8") from None
    if size > LARGEST_PROMPT:
        raise ConfigError(f"{named[0]}: the prompt is larger than {LARGEST_PROMPT} bytes", remedy="shorten it")
    if not text.strip():
        raise ConfigError(f"{named[0]}: the prompt is blank", remedy="write what the agent has to do")
    return text


def standard_input() -> BinaryIO:
    """Standard input for a thread. Python aborts at exit if a thread holds the lock of `sys.stdin`."""
    return open(sys.stdin.fileno(), "rb", closefd=False)


def stored_session(options: Options, folders: Folders, agent: str) -> tuple[str, StoredSession | None]:
    """The key of the task's session, and the stored session; None for a new session. Raises ConfigError.

    With --continue it is the agent's latest session in the project.
    """
    if options.goes_on and options.session is not None:
        raise ConfigError("--continue and --session both name the session", remedy="leave one of them out")
    if options.goes_on:
        latest = next(sessions_of(folders.sessions, agent, str(folders.project)), None)
        if latest is None:
            raise ConfigError(
                f"--continue: agent {agent} has no session in {folders.project}", remedy="leave --continue out"
            )
        return latest.identity.key, latest
    if options.session is None:
        return str(uuid4()), None
    # The file is named after the key as the daemon stores it.
    key = options.session.removeprefix(KEY_PREFIX)
    path = path_of(folders.sessions, key)
    if not path.exists():
        return key, None
    stored = read_session(path)
    if stored.identity.key != key:
        raise ConfigError(
            f"{path}: holds the session {stored.identity.key}, not {key}", remedy="give the file its old name again"
        )
    project, agent = stored.identity.project, stored.identity.agent
    if not Path(project).is_dir():
        raise ConfigError(
            f"--session {options.session}: its project is gone: {project}",
            remedy="put the folder back, or give --session another name",
        )
    cwd = None if options.cwd is None else str(folders.project)
    for option, given, own in (("--cwd", cwd, project), ("--agent", options.agent, agent)):
        if given is not None and given != own:
            raise ConfigError(
                f"{option} {given}: session {options.session} is of {own}",
                remedy=f"leave {option} out, or give --session another name",
            )
    return key, stored


def check_summary(path: Path | None) -> None:
    """Raise ConfigError if the summary could not be written at the end."""
    if path is None:
        return
    if not os.access(path.parent, os.W_OK) or (os.path.lexists(path) and not os.path.isfile(path)):  # noqa: PTH113 - as above
        # The file would replace a device such as /dev/null.
        raise ConfigError(f"--summary {path}: cannot be written", remedy="name a file in a folder of yours")
    if len(os.fsencode(path.name)) > os.pathconf(path.parent, "PC_NAME_MAX"):
        raise ConfigError(f"--summary {path.name[:80]}…: the name is too long for a file", remedy="shorten it")


def _state(environ: Mapping[str, str]) -> Path:
    named = environ.get(STATE_VARIABLE, "").strip()
    if named:
        return Path(named)
    base = environ.get("XDG_STATE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".local" / "state") / "signet-harness"


def _make(folder: Path, option: str = "--state-dir") -> Path:
    with os_errors(f"{option} {folder}: cannot be made", "name a folder of yours"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{option} {folder}: cannot be written to", remedy="name a folder of yours")
    return folder


def _completion_options(options: Options, loaded: ProviderSettings) -> CompletionOptions:
    """The completion options, with those of the command line. Raises ConfigError."""
    if options.stop and loaded.api == "openai-responses":
        raise ConfigError("--stop: openai-responses has no stop texts", remedy="give --api openai-completions")
    return replace(loaded.options, max_tokens=options.max_tokens, temperature=options.temperature, stop=options.stop)


def _decode(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: is not UTF-8 at byte {error.start}", remedy="save it as UTF-8") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """All that a session needs to begin. `config` is for the agent's own daemon; `stored` is the named session."""

    folders: Folders
    identity: SessionIdentity
    stored: StoredSession | None
    config: HarnessConfig
    workspace: Path
    tools: tuple[Tool | DaemonTool, ...]
    permissions: Permissions
    settings: ProviderSettings
    provider: Provider
    mcp: McpSettings
    context_budget: int | None
    most_rounds: int

    def host(self, *sources: ToolSource) -> SessionHost:
        """A host for the session, with the tools of `sources` in addition to its own."""
        return SessionHost(
            self.config,
            self.tools,
            research=[tool.name for tool in self.tools if tool.name in RESEARCH],
            sources=sources,
            workspace=self.workspace,
            context_budget=self.context_budget,
            most_rounds=self.most_rounds,
            options=self.settings.options,
            permissions=self.permissions,
        )

    @classmethod
    def from_options(cls, options: Options, environ: Mapping[str, str], folders: Folders) -> SessionPlan:
        """Make the plan from options and environment. Raises HarnessError for a value that cannot be used."""
        config = HarnessConfig.from_environment(environ)
        key, stored = stored_session(options, folders, options.agent or config.agent)
        if stored is None:
            agent = options.agent or agent_in(key) or config.agent
            identity = SessionIdentity(key, agent, str(folders.project))
        else:
            identity = stored.identity
        routing = routing_table(environ)
        if routing is not None:
            config = routing.settings_for(identity.agent, config)
        config = replace(config, bypassed=config.bypassed or options.without_memory)
        workspace = settings.workspace_of(environ)
        loaded = settings.load(options.flags, environ, workspace)
        loaded = replace(loaded, options=_completion_options(options, loaded))
        if loaded.key is not None and loaded.key.is_secret:
            config = replace(config, provider_key=loaded.key.reveal())
        own = [tool_of(place, "--tool") for place in options.tools]
        tools: tuple[Tool | DaemonTool, ...] = (*BUILT_IN, *FILE_TOOLS, *installed_tools(), *own)
        patterns = patterns_of(options.allowed, [tool.name for tool in tools])
        return cls(
            folders=folders,
            identity=identity,
            stored=stored,
            config=config,
            workspace=workspace,
            tools=tools,
            permissions=Permissions(
                patterns=(*patterns, *(escape(tool.name) for tool in own)), read_only=options.read_only
            ),
            settings=loaded,
            provider=settings.make_provider(loaded),
            mcp=read_mcp_settings(read_agent_file(workspace), environ),
            context_budget=options.context_budget,
            most_rounds=MOST_ROUNDS if options.max_rounds is None else options.max_rounds,
        )
