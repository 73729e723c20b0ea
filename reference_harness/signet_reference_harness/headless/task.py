"""A headless task, from its options to its exit status.

Whatever happens on the way, the session is ended at the daemon and the summary is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

from signet_reference_harness.conversation import Conversation
from signet_reference_harness.errors import ConfigError, HarnessError, printable
from signet_reference_harness.events import Publisher, RunFinished, RunStarted
from signet_reference_harness.events.summary import Failure, Status, Summary, SummaryFolders, came_to
from signet_reference_harness.headless.inputs import Folders, Options, check_summary, read_prompt
from signet_reference_harness.headless.output import Output
from signet_reference_harness.headless.plan import Plan
from signet_reference_harness.headless.session_file import SessionFile, path_of
from signet_reference_harness.headless.summary import EXIT_STATUSES, write_summary
from signet_reference_harness.host import SessionHost
from signet_reference_harness.mcp_servers.servers import Servers, start_for
from signet_reference_harness.messages import ToolCall
from signet_reference_harness.providers.completion import StopReason
from signet_reference_harness.providers.secret import Secret
from signet_reference_harness.reply import FailureClass, Reply
from signet_reference_harness.session import Session
from signet_reference_harness.tools import ToolResult
from signet_reference_harness.tools.bounds import ResultFolder
from signet_reference_harness.turn import TurnResult

NAME: Final = "task"
"""What the session is called within this process."""

RESEARCH: Final = ("memory_search",)
"""Tools that run on the prompt before the model sees it."""

Tell = Callable[[str, str | None], Any]


def perform(options: Options, tell: Tell) -> int:
    """Do the task that the options ask for, and return the exit status.

    `tell` shows a person what went wrong: what, and what to do about it.
    """
    try:
        check_summary(options.summary)
    except HarnessError as failure:
        tell(failure.message, failure.remedy)
        return EXIT_STATUSES["invalid"]
    task = _Task(options)
    try:
        with task.interrupted_by_sigterm():
            task.prepare(os.environ)
            asyncio.run(task.work())
    except HarnessError as failure:
        task.fail("invalid", type(failure).__name__, failure.message)
        tell(task.scrub(failure.message), failure.remedy)
    except KeyboardInterrupt:
        task.fail("cancelled", "KeyboardInterrupt", "interrupted before the model was asked")
    except Exception as crash:
        task.fail("failed", type(crash).__name__, str(crash))
        raise
    else:
        if task.error is not None:
            tell(task.error.message, None)
    finally:
        task.finish(tell)
    return task.exit_status


class _Task:
    """One task. What is known of it grows on the way, and its summary tells it at any moment."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._began = time.monotonic()
        self._prompt = ""
        self._plan: Plan | None = None
        self._folders: Folders | None = None
        self._status: Status = "failed"
        self._turn = TurnResult(outcome=StopReason.ERROR)
        self._run = str(uuid4())
        self._output = Output(options.output_format, sys.stdout, self.scrub)
        self.error: Failure | None = None
        self._notes: list[str] = []
        self._servers = Servers()
        self._under_way: asyncio.Task[None] | None = None
        """What a signal cancels: the turn, never the end of the session."""
        self._signal: int | None = None
        """The signal that ended the turn."""

    def scrub(self, text: str) -> str:
        """`text` without the provider's key."""
        given = self._options.api_key
        text = Secret(given).hide_in(text) if given else text
        key = None if self._plan is None else self._plan.settings.key
        return text if key is None else key.hide_in(text)

    def prepare(self, environ: Mapping[str, str]) -> None:
        """Read everything that the task needs. Raises HarnessError for what cannot be used."""
        self._folders = Folders.read(self._options, environ)
        self._prompt = read_prompt(self._options, lambda: sys.stdin.buffer)
        self._plan = Plan.read(self._options, environ, self._folders)

    @contextlib.contextmanager
    def interrupted_by_sigterm(self) -> Iterator[None]:
        """While this lasts, and no turn is under way, SIGTERM does what SIGINT does: it raises KeyboardInterrupt."""

        def interrupt(number: int, _frame: object) -> None:
            self._signal = number
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGTERM, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    async def work(self) -> None:
        """Do the task. Raises HarnessError when it cannot be begun."""
        plan = self._plan
        assert plan is not None  # noqa: S101 - prepared before
        host = SessionHost(
            plan.config,
            plan.tools,
            research=RESEARCH,
            sources=[self._servers],
            workspace=plan.workspace,
            context_budget=self._options.context_budget,
        )
        try:
            await _demand_daemon(host)
            size = 0 if plan.stored is None else plan.stored.size
            file = SessionFile.open(plan.folders.sessions, plan.identity, self.scrub, size=size)
            try:
                with self._heeding_signals():
                    await self._hold_session(host, plan, file)
            finally:
                file.close()
        finally:
            await host.aclose()
            await self._servers.aclose()
            self._notes += self._servers.notices
            try:
                await plan.provider.aclose()
            except Exception as error:  # noqa: BLE001 - a stranger's code; what it has answered stays answered
                self._notes.append(f"the provider crashed when it was closed: {type(error).__name__}: {error}")

    async def _hold_session(self, host: SessionHost, plan: Plan, file: SessionFile) -> None:
        """The session from its start to its end, which comes whatever the turn comes to."""
        identity = plan.identity
        session = host.session_for(NAME, project=identity.project, agent=identity.agent, key=identity.key)
        session.results = ResultFolder(file.path.with_suffix(".results"))
        if self._options.max_rounds is not None:
            session.most_rounds = self._options.max_rounds
        if plan.stored is not None:
            stored = plan.stored
            session.conversation = Conversation.restored(stored.messages, stored.turns, stored.summary)
        limit = None if self._options.timeout_ms is None else self._options.timeout_ms / 1000
        told = _Told(self._output, file)
        self._output.events.put(RunStarted(self._run, identity.key, identity.agent))
        try:
            self._under_way = asyncio.current_task()
            async with asyncio.timeout(limit):
                await start_for(self._servers, plan.mcp, session.client, identity)
                await host.start(session, "startup" if plan.stored is None else "resume")
                file.turn(self._prompt)
                self._turn = await session.turn(self._prompt, plan.provider, listener=told)
            self._conclude(self._turn)
        except TimeoutError:
            self._break_off("timeout", f"the task took longer than --timeout-ms {self._options.timeout_ms}", session)
        except asyncio.CancelledError:
            if self._signal is None:
                raise
            self._break_off("cancelled", f"ended by {signal.Signals(self._signal).name}", session)
        finally:
            self._under_way = None
            try:
                file.outcome(str(self._turn.outcome), self._turn.reply, self._turn.messages, error=self._error_text())
            finally:
                # Also where the disk is full.
                await host.end(session)
                self._notes += _notes(session)

    def _conclude(self, turn: TurnResult) -> None:
        concluded = came_to(turn)
        self._status, failure = concluded.status, concluded.error
        if failure is not None:
            self.error = failure.model_copy(update={"message": self.scrub(failure.message)})
        elif turn.detail:
            self._notes.append(turn.detail)

    def _break_off(self, status: Status, why: str, session: Session) -> None:
        self._turn = session.cut_turn or TurnResult(outcome=StopReason.CANCELLED)
        self.fail(status, "TimeoutError" if status == "timeout" else "Cancelled", why)

    def finish(self, tell: Tell) -> None:
        """Write the notes, the summary and the end of the output."""
        if not self._options.quiet:
            for note in self._notes:
                print(f"note: {printable(self.scrub(note))}", file=sys.stderr)
        summary = self._summary()
        self._output.events.put(RunFinished(self._run, self._turn.reply, summary))
        self._output.drain()
        lost = self._output.lost
        if self._status == "done" and lost is not None and not isinstance(lost, BrokenPipeError):
            # A reader that leaves has what it wanted; a full disk has not.
            told = f"standard output: cannot be written: {lost.strerror or lost}"
            self.fail("failed", "OutputError", told)
            tell(told, "the reply stands in the session file")
            summary = self._summary()
        if self._options.summary is not None:
            write_summary(summary, self._options.summary)

    @property
    def exit_status(self) -> int:
        """The exit status of the process: after a signal the usual one of that signal."""
        return EXIT_STATUSES[self._status] if self._signal is None else 128 + self._signal

    def fail(self, status: Status, kind: str, message: str) -> None:
        """Note why the task came to nothing."""
        self._status = status
        self.error = Failure(kind=kind, message=self.scrub(message))

    def _error_text(self) -> str | None:
        return None if self.error is None else self.error.message

    @contextlib.contextmanager
    def _heeding_signals(self) -> Iterator[None]:
        """While this lasts, SIGINT and SIGTERM cancel the turn, and leave the end of the session alone."""
        loop = asyncio.get_running_loop()

        def cancel(number: int) -> None:
            if self._under_way is not None and self._signal is None:
                self._signal = number
                self._under_way.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, cancel, number)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _summary(self) -> Summary:
        """What is known of the task."""
        plan, folders, turn = self._plan, self._folders, came_to(self._turn)
        began = self._status != "invalid"
        return Summary(
            status=self._status,
            outcome=turn.outcome if began else None,
            session=None if plan is None else plan.identity.key,
            agent=None if plan is None else plan.identity.agent,
            provider=None if plan is None else plan.settings.provider,
            model=None if plan is None else plan.settings.model,
            folders=SummaryFolders()
            if folders is None
            else SummaryFolders(project=str(folders.project), state=str(folders.state), sessions=str(folders.sessions)),
            session_file=None if plan is None or not began else str(path_of(plan.folders.sessions, plan.identity.key)),
            output_format=self._options.output_format,
            elapsed_ms=round((time.monotonic() - self._began) * 1000, 3),
            deferred_s=turn.deferred_s,
            error=self.error,
            usage=turn.usage,
            rounds=turn.rounds,
        )


class _Told(Publisher):
    """Publishes what it hears of a turn, and keeps in the session's file what stays done whatever becomes of it."""

    def __init__(self, output: Output, file: SessionFile) -> None:
        super().__init__(output.events.put)
        self._file = file

    def tool_result(self, call: ToolCall, result: ToolResult) -> None:
        """Note that the tool has run."""
        self._file.tool(call.name, ok=result.ok)
        super().tool_result(call, result)

    def compaction(self, summary: str) -> None:
        """Keep the summary."""
        self._file.compaction(summary)
        super().compaction(summary)


async def _demand_daemon(host: SessionHost) -> None:
    """Raise ConfigError when nobody listens where the daemon should be. One that is slow or ill is worked without."""
    reply = await host.client.health()
    if reply.failure is FailureClass.OFFLINE:
        raise ConfigError(
            f"no daemon answers at {host.client.config.origin}: {reply.detail}",
            remedy="start it, set SIGNET_DAEMON_URL, or set SIGNET_BYPASS=1 to work without memory",
        )


def _notes(session: Session) -> Iterator[str]:
    """What the daemon did not do, a line for each operation and failure."""
    failed = (reply for reply in session.take_replies() if reply.failure is not None)
    yield from dict.fromkeys(_note(reply) for reply in failed)


def _note(reply: Reply) -> str:
    status = "" if reply.status is None else f" {reply.status}"
    return f"{reply.operation}: {reply.failure}{status}: {reply.detail or reply.error}"
