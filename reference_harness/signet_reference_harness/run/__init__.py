"""Performs a headless task, from its options to its exit status.

Whatever happens meanwhile, the session is ended at the daemon and the summary is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from signet_reference_harness.config import Secret
from signet_reference_harness.daemon_client import AdapterClient
from signet_reference_harness.daemon_client.reply import REFUSALS, Reply
from signet_reference_harness.errors import ConfigError, HarnessError, printable
from signet_reference_harness.mcp_servers import McpServers, start_for
from signet_reference_harness.providers import Provider, StopReason
from signet_reference_harness.run import inputs
from signet_reference_harness.run.interruption import Interruption
from signet_reference_harness.run.open_sessions import OpenMark, open_session
from signet_reference_harness.run.output import EXIT_STATUSES, Output, write_summary
from signet_reference_harness.run.run_journal import FINAL, Checkpoints, RunJournal, RunRecord, demand_new
from signet_reference_harness.run.session_file import SessionFile, path_of
from signet_reference_harness.session import Session, events
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.session.turn import TurnResult
from signet_reference_harness.tools import DaemonTool
from signet_reference_harness.tools.registry import in_thread

READER_TIMEOUT_S: Final = 5.0
"""How long a task that was interrupted waits for a reader of its output."""

QUICK_READER_S: Final = 0.05
"""How long the last output may take before a signal ends the wait for its reader."""

Tell = Callable[[str, str | None], Any]


def perform(options: inputs.Options, tell: Tell) -> int:
    """Perform the task of the options, and return the exit status. `tell` shows a person an error and its remedy."""
    try:
        inputs.check_summary(options.summary)
    except HarnessError as failure:
        tell(failure.message, failure.remedy)
        return EXIT_STATUSES["invalid"]
    return asyncio.run(_perform(_Task(options), tell))


async def _perform(task: _Task, tell: Tell) -> int:
    unreported = None
    with task.interruption.handled():
        try:
            await task.work(os.environ)
        except (Exception, asyncio.CancelledError) as failure:
            task.interruption.settle()
            if isinstance(failure, asyncio.CancelledError) and task.interruption.status is not None:
                task.break_off()
                tell(task.interruption.why, None)
            elif isinstance(failure, HarnessError):
                task.fail("invalid", type(failure).__name__, failure.message)
                tell(task.scrub(failure.message), failure.remedy)
            else:
                task.fail("failed", type(failure).__name__, str(failure))
                raise
        else:
            unreported = task.error
        finally:
            await task.finish(tell)
        if unreported is not None:
            tell(unreported.message, task.remedy)
    return task.exit_status


class _Task:
    """One task and its state; its summary can be made at any moment."""

    def __init__(self, options: inputs.Options) -> None:
        self.interruption = Interruption(options.timeout_ms)
        self._options = options
        self._began = time.monotonic()
        self._run = options.resume or options.run_id or str(uuid4())
        self._journal: RunJournal | None = None
        self._plan: inputs.SessionPlan | None = None
        self._prompt = ""
        self._folders: inputs.Folders | None = None
        self._file: SessionFile | None = None
        self._session: Session | None = None
        self._mark: OpenMark | None = None
        """The mark of the open session, made before its start."""
        self._status: events.Status = "failed"
        self._turn = TurnResult(outcome=StopReason.ERROR)
        shows_tools = options.output_format == "text" and not options.quiet
        tools = sys.stderr if shows_tools else None
        self._output = Output(options.output_format, sys.stdout, self.scrub, tools=tools)
        self.error: events.RunFailure | None = None
        self._notes: list[str] = []
        self._published_notices: list[str] = []
        """Notices that were published as events."""
        self._servers = McpServers()

    @property
    def has_begun(self) -> bool:
        """Whether its session was started, or was about to be."""
        return self._mark is not None

    def scrub(self, text: str) -> str:
        """`text` without the provider's key."""
        option = self._options.api_key
        text = Secret(option).hide_in(text) if option else text
        key = None if self._plan is None else self._plan.settings.key
        return text if key is None else key.hide_in(text)

    async def work(self, environ: Mapping[str, str]) -> None:
        """Perform the task. Raises HarnessError if it cannot begin, or its files cannot be written."""
        plan, journal = await self._prepare(environ)
        host = plan.host(self._servers)
        try:
            await self._take_turn(host, plan, journal)
        except asyncio.CancelledError:
            if self.interruption.status is None:
                raise
            self.break_off()
        finally:
            self.interruption.settle()
            async with contextlib.AsyncExitStack() as stack:
                # The stack runs these from the last to the first, each even if another fails.
                stack.push_async_callback(self._close_provider, plan.provider)
                stack.push_async_callback(self._close_servers)
                stack.callback(self._release_mark)
                stack.push_async_callback(host.aclose)
                stack.push_async_callback(self._end_session, host)
                stack.callback(self._keep_outcome)

    async def _prepare(self, environ: Mapping[str, str]) -> tuple[inputs.SessionPlan, RunJournal]:
        """Read everything that the task needs, and take the lease on the run. Raises HarnessError."""
        options = self._options
        runs = inputs.runs_folder(inputs.state_folder(options, environ))
        if options.resume is not None:
            inputs.check_resume(options)
            self._journal = RunJournal.resume(runs, options.resume, self.scrub)
            options = inputs.options_of_run(options, self._journal.recorded)
        elif options.run_id is not None:
            demand_new(runs, options.run_id)
        self._folders = folders = inputs.Folders.from_options(options, environ)
        # In threads, since reading a prompt, or loading a plugin, may never end.
        self._prompt = await in_thread(lambda: inputs.read_prompt(options, inputs.standard_input))
        self._plan = plan = await in_thread(lambda: inputs.SessionPlan.from_options(options, environ, folders))
        if self._journal is not None:
            inputs.check_unchanged(self._journal.recorded, plan.stored)
            return plan, self._journal
        recorded = RunRecord(
            run=self._run,
            session=plan.identity.key,
            agent=plan.identity.agent,
            project=plan.identity.project,
            prompt=self._prompt,
            sessions=str(folders.sessions),
            turns=0 if plan.stored is None else len(plan.stored.turns),
        )
        self._journal = journal = RunJournal.begin(runs, recorded, self.scrub)
        return plan, journal

    async def _take_turn(self, host: SessionHost, plan: inputs.SessionPlan, journal: RunJournal) -> None:
        await _demand_daemon(host)
        identity, folders = plan.identity, plan.folders
        session, file = await open_session(host, identity, folders, plan.stored, self.scrub, seized=journal.seized)
        self._session, self._file = session, file
        if self._options.compare_memory:
            # The comparison starts from the session as it was.
            session.conversation = deepcopy(session.conversation)
        await start_for(self._servers, plan.mcp, session.client, identity)
        self._mark = OpenMark.create(folders.open_sessions, session, file.path)
        self._output.events.publish(events.RunStarted(self._run, identity.key, identity.agent, resumed=journal.resumed))
        await host.start(session, "startup" if plan.stored is None else "resume")
        self._demand_memory(session)
        file.note_turn(self._prompt)
        checkpoints = Checkpoints(self._output.events, file, journal, self._published_notices)
        self._turn = await session.turn(self._prompt, plan.provider, listener=checkpoints, past=journal.recorded.past)
        self._conclude(self._turn)
        if self._options.compare_memory and self._status == "done":
            reply = await _answer_without_memory(plan, self._prompt)
            self._output.events.publish(events.WithoutMemory(reply))

    def _demand_memory(self, session: Session) -> None:
        """Raise ConfigError if the answer to the start shows that no daemon serves this harness."""
        reply = session.start_reply
        if reply is not None and reply.shows_no_daemon:
            session.is_open = False
            if self._mark is not None:
                self._mark.release(owed=False)
                self._mark = None
            raise _no_daemon(session.client, reply)

    def _keep_outcome(self) -> None:
        if self._file is None:
            return
        try:
            if self.has_begun and self._is_ours:
                error = None if self.error is None else self.error.message
                details = {"run": self._run, "status": self._status, "error": error}
                self._file.note_outcome(str(self._turn.outcome), self._turn.reply, self._turn.messages, **details)
        finally:
            self._file.close()

    async def _end_session(self, host: SessionHost) -> None:
        if self._session is None:
            return
        if not self._is_ours:
            # Another process has taken the run over, and will end its session.
            self._session.is_open = False
        elif self._mark is not None:
            await host.end(self._session)
            if not self._session.owes_end:
                # Immediately, since a kill before this line makes the next process send the end again.
                self._mark.remove()
        self._notes += self._session.take_failures()

    def _release_mark(self) -> None:
        if self._mark is not None:
            self._mark.release(owed=not self._is_ours or self._session is None or self._session.owes_end)

    async def _close_servers(self) -> None:
        await self._servers.aclose()
        self._notes += self._servers.notices

    async def _close_provider(self, provider: Provider) -> None:
        try:
            await provider.aclose()
        except Exception as error:  # noqa: BLE001 - third-party code; its answers are complete
            self._notes.append(f"the provider crashed when it was closed: {type(error).__name__}: {error}")

    @property
    def _is_ours(self) -> bool:
        """Whether no other process has taken the run over."""
        return self._journal is not None and self._journal.is_held

    def _conclude(self, turn: TurnResult) -> None:
        summary = events.summarise(turn)
        self._status, failure = summary.status, summary.error
        if failure is not None:
            self.error = failure.model_copy(update={"message": self.scrub(failure.message)})
        elif turn.detail:
            self._notes.append(turn.detail)

    def break_off(self) -> None:
        """Note that the task was interrupted, with the result of its turn so far."""
        cut = None if self._session is None else self._session.cut_turn
        self._turn = cut or TurnResult(outcome=StopReason.CANCELLED)
        status = self.interruption.status or "cancelled"
        self.fail(status, "TimeoutError" if status == "timeout" else "Cancelled", self.interruption.why)

    @property
    def remedy(self) -> str | None:
        """What to do about a run that failed; None if it is over, or never began."""
        if not self.has_begun or self._status in FINAL:
            return None
        first = "" if self._turn.remedy is None else f"{self.scrub(self._turn.remedy)}; then "
        state = "" if self._options.state_dir is None else f" --state-dir {self._options.state_dir}"
        return f"{first}go on from its last checkpoint: signet-harness run --resume {self._run}{state}"

    async def finish(self, tell: Tell) -> None:
        """Write the end of the output, the summary and the notes."""
        if self._journal is not None:
            self._release_run(self._journal)
        notes = dict.fromkeys([*self._published_notices, *self._notes])
        for note in notes:
            if note not in self._published_notices:
                self._output.events.publish(events.Notice(note))
        summary = self._summary()
        self._output.events.publish(events.RunFinished(self._turn.reply, summary))
        self._write_summary(summary)
        hurried = self.interruption.status is not None or self.interruption.is_hasty
        draining = asyncio.ensure_future(in_thread(self._output.drain))
        await asyncio.wait([draining], timeout=QUICK_READER_S)
        with self.interruption.ends(draining):
            await asyncio.wait([draining], timeout=READER_TIMEOUT_S if hurried else None)
        # Only now, so that the notes come after the last line of the reply.
        for note in () if self._options.quiet else notes:
            print(f"note: {printable(self.scrub(note))}", file=sys.stderr)
        self._tell_memory()
        if self._options.explain:
            effect = self._turn.memory
            for name, text in [("", effect.in_brief), *effect.explained()]:
                print(printable(self.scrub(f"{name}  {text}".strip())), file=sys.stderr)
        lost = self._output.lost
        if self._status == "done" and lost is not None and not isinstance(lost, BrokenPipeError):
            # A reader that closes the pipe has what it wanted, but a full disk is a failure.
            problem = f"standard output: cannot be written: {lost.strerror or lost}"
            self.fail("failed", "OutputError", problem)
            tell(problem, "the session file holds the reply")
            self._write_summary(self._summary())

    def _tell_memory(self) -> None:
        """Print what the session's memory lacked, also with --quiet."""
        session = self._session
        if not self.has_begun or session is None or session.memory.is_whole or session.client.config.bypassed:
            return
        facts = session.memory
        started = "started" if facts.started else "not started"
        summary = f"memory: {started}; calls refused: {facts.refused}, failed: {facts.failed}"
        print(summary, file=sys.stderr)

    def _release_run(self, journal: RunJournal) -> None:
        if not self.has_begun:
            journal.discard()
            return
        try:
            if journal.is_held:
                journal.note_outcome(self._status)
        except HarnessError as failure:
            self._notes.append(failure.message)
        finally:
            journal.release()

    def _write_summary(self, summary: events.RunSummary) -> None:
        if self._options.summary is not None:
            write_summary(summary, self._options.summary)

    @property
    def exit_status(self) -> int:
        """The exit status of the process; after a signal it is 128 plus the signal's number."""
        number = self.interruption.signal
        return EXIT_STATUSES[self._status] if number is None else 128 + number

    def fail(self, status: events.Status, kind: str, message: str) -> None:
        """Note why the task failed."""
        self._status = status
        self.error = events.RunFailure(kind=kind, message=self.scrub(message))

    def _summary(self) -> events.RunSummary:
        plan, folders, turn = self._plan, self._folders, events.summarise(self._turn)
        began = self._status != "invalid"
        return events.RunSummary(
            status=self._status,
            outcome=turn.outcome if began else None,
            run=self._run,
            session=None if plan is None else plan.identity.key,
            agent=None if plan is None else plan.identity.agent,
            provider=None if plan is None else plan.settings.provider,
            model=None if plan is None else plan.settings.model,
            folders=events.SummaryFolders(
                **{name: str(getattr(folders, name)) for name in events.SummaryFolders.model_fields if folders}
            ),
            session_file=None if plan is None or not began else str(path_of(plan.folders.sessions, plan.identity.key)),
            output_format=self._options.output_format,
            elapsed_ms=round((time.monotonic() - self._began) * 1000, 3),
            deferred_s=turn.deferred_s,
            error=self.error,
            memory=events.RunMemory() if self._session is None else events.memory_of(self._session.memory),
            usage=turn.usage,
            rounds=turn.rounds,
        )


async def _answer_without_memory(plan: inputs.SessionPlan, prompt: str) -> str:
    """The model's answer to the prompt in a new session without the daemon, or why there is no answer."""
    own = tuple(tool for tool in plan.tools if not isinstance(tool, DaemonTool))
    host = replace(plan, config=replace(plan.config, bypassed=True), tools=own).host()
    try:
        session = host.session_for("without memory", project=plan.identity.project, agent=plan.identity.agent, key=None)
        if plan.stored is not None:
            session.conversation = plan.stored.conversation
        await session.start()
        turn = await session.turn(prompt, plan.provider)
        return turn.reply if turn.error is None else f"no answer: {turn.error}"
    finally:
        await host.aclose()


async def _demand_daemon(host: SessionHost) -> None:
    """Raise ConfigError if no daemon serves the address. A slow or failing daemon does not stop the task."""
    reply = await host.client.health()
    if reply.shows_no_daemon:
        raise _no_daemon(host.client, reply)


def _no_daemon(client: AdapterClient, reply: Reply) -> ConfigError:
    remedy = "start it, set SIGNET_DAEMON_URL, or give --without-memory"
    if reply.status in REFUSALS:
        remedy = "set SIGNET_TOKEN to a token that the daemon takes, or give --without-memory"
    return ConfigError(reply.describe_no_daemon(client.config.origin), remedy=remedy)
