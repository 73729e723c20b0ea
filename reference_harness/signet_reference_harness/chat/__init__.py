"""`signet-harness chat`, from its options to its exit status: whatever ends it, the session is ended at the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from signet_reference_harness.channels import ChatFace
from signet_reference_harness.channels.conversing import ChannelConversation
from signet_reference_harness.channels.plain import PlainFace
from signet_reference_harness.chat.chat_session import ChatSession
from signet_reference_harness.chat.commands import COMMANDS, ChatCommands, is_at_once
from signet_reference_harness.config import bare_token
from signet_reference_harness.errors import ConfigError, HarnessError, pip_install
from signet_reference_harness.mcp_servers import McpServers, start_for
from signet_reference_harness.providers import Provider, Usage
from signet_reference_harness.run.inputs import Folders, Options, SessionPlan

INVALID: Final = 2
ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
HISTORY: Final = "chat-history"
TOKEN_VARIABLE: Final = "SIGNET_HARNESS_CHAT_TOKEN"  # noqa: S105 - the name of one
CLOSING_S: Final = 0.5
"""How long the last requests may still be answered once the conversation is over."""
Tell = Callable[[str, str | None], Any]


def perform(options: Options, tell: Tell, *, plain: bool = False, listen: int | None = None) -> int:
    """Run the chat and return the exit status. `tell` shows a person an error and its remedy.

    With `listen`, the chat runs over HTTP, at that port of this machine; 0 is a free one.
    """
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        tell("a standard stream is closed", "leave standard input, output and error open, or let them be /dev/null")
        return INVALID
    chat = _Chat(options, plain=plain or not _is_screen(os.environ), listen=listen)
    try:
        folders = Folders.from_options(options, os.environ)
        plan = SessionPlan.from_options(options, os.environ, folders)
        asyncio.run(chat.hold(plan))
    except HarnessError as failure:
        tell(failure.message, failure.remedy)
        return INVALID
    return 0 if chat.signal is None else 128 + chat.signal


class _Chat:
    """One chat: a face, the session that it is in, and its commands."""

    def __init__(self, options: Options, *, plain: bool, listen: int | None) -> None:
        self._options = options
        self._plain = plain
        self._listen = listen
        self.signal: int | None = None
        """The signal that ended it."""
        self._close: Callable[[], object] = lambda: None
        self._interrupt: Callable[[], bool] = lambda: False
        """Stops the answer that is being made; False when the model is idle."""

    async def hold(self, plan: SessionPlan) -> None:
        """Run the chat until the channel closes, or a signal comes. Raises HarnessError if the chat cannot begin."""
        with self._handle_signals():
            await self._hold(plan)

    async def _hold(self, plan: SessionPlan) -> None:
        servers = McpServers()
        host = plan.host(servers)
        key = plan.settings.key
        chat_session = ChatSession(
            host,
            plan.provider,
            plan.folders,
            str if key is None else key.hide_in,
            plan.settings.model or plan.settings.provider,
        )
        beginning = asyncio.current_task()
        assert beginning is not None  # noqa: S101 - this runs in a task
        self._close = beginning.cancel
        try:
            reply = await host.client.health()
            await start_for(servers, plan.mcp, host.client, plan.identity)
            await chat_session.switch_to(plan.identity, plan.stored)
            if self._listen is not None:
                await _serve(chat_session, self._listen)
                return
            replies = (chat_session.session.start_reply or reply, reply)
            origin = host.client.config.origin
            missing = next((each.describe_no_daemon(origin) for each in replies if each.shows_no_daemon), None)
            await self._talk(plan, chat_session, missing)
        except asyncio.CancelledError:
            if self.signal is None:
                raise
        finally:
            self._close = lambda: None
            async with contextlib.AsyncExitStack() as stack:
                # The stack runs these from the last to the first, each even if another fails.
                stack.push_async_callback(_close_provider, plan.provider)
                stack.push_async_callback(servers.aclose)
                # After the host, which repeats an end that was lost.
                stack.callback(chat_session.close)
                stack.push_async_callback(host.aclose)
                stack.push_async_callback(chat_session.end)

    async def _talk(self, plan: SessionPlan, chat_session: ChatSession, missing: str | None) -> None:
        """Hold the conversation; `missing` says why it has no daemon."""

        def status() -> list[str]:
            session, spent = chat_session.session, sum(chat_session.spent.values(), Usage())
            facts = [session.identity.agent, session.identity.key[:8], chat_session.model]
            if spent != Usage():
                facts.append(f"{_count(spent.input_tokens)} in, {_count(spent.output_tokens)} out")
            if session.context_tokens:
                facts.append(f"context {_count(session.context_tokens)}")
            return facts

        face = self._face(plan.folders.state, status)
        plan.permissions.ask = face.ask
        commands = ChatCommands(face, chat_session, plan.workspace, plan.folders.project, plan.settings.prices)

        conversing = ChannelConversation(
            face,
            lambda: chat_session.session,
            commands.take_turn,
            command=commands.carry_out,
            at_once=is_at_once,
            on_joined=face.show_user,
        )
        self._greet(face, commands, plan, missing)
        face.conversation = conversing
        self._close, self._interrupt = face.close, conversing.interrupt
        talking = asyncio.create_task(conversing.run())
        talking.add_done_callback(lambda _task: face.close())
        try:
            await face.run()
        finally:
            face.close()
            await talking

    def _greet(self, face: ChatFace, commands: ChatCommands, plan: SessionPlan, missing: str | None) -> None:
        if not self._plain:
            face.note(f"Signet chat in {plan.folders.project}. /help says what can be typed, /quit ends the chat.")
        if missing is not None:
            face.error(
                f"{missing}; this chat has no memory: start the daemon, or set SIGNET_DAEMON_URL and SIGNET_TOKEN"
            )
        else:
            commands.tell_notes()
        if plan.stored is not None and not self._plain:
            commands.tell_resumed()

    def _face(self, state: Path, status: Callable[[], list[str]]) -> ChatFace:
        if self._plain:
            return PlainFace(sys.stdin.fileno(), sys.stdout, sys.stderr, prompt=sys.stdin.isatty())
        try:
            from prompt_toolkit.data_structures import Size
            from prompt_toolkit.input import create_input
            from prompt_toolkit.output.vt100 import Vt100_Output

            from signet_reference_harness.channels.screen import Screen
        except ImportError:
            raise ConfigError(
                "the line editor needs the package 'prompt_toolkit'",
                remedy=f"{pip_install('harness')}, or signet-harness chat --plain",
            ) from None

        def size() -> Size:
            columns, rows = shutil.get_terminal_size()
            return Size(rows=rows, columns=columns)

        # No query of the cursor's position: on a slow line, the terminal's answer would mix with what the user types.
        output = Vt100_Output(sys.stdout, size, term=os.environ.get("TERM"), enable_cpr=False)
        return Screen(
            status=status,
            commands={name: each.about for name, each in COMMANDS.items()},
            history=state / HISTORY,
            colour=not os.environ.get("NO_COLOR"),
            terminal=(create_input(sys.stdin), output),
        )

    @contextlib.contextmanager
    def _handle_signals(self) -> Iterator[None]:
        """While this lasts, SIGTERM and SIGHUP close the chat, and SIGINT stops the answer, or else closes it too."""
        loop = asyncio.get_running_loop()

        def close(number: int) -> None:
            self.signal = self.signal or number
            self._close()

        def stop() -> None:
            if not self._interrupt():
                close(signal.SIGINT)

        for number in ENDING_SIGNALS:
            loop.add_signal_handler(number, close, number)
        loop.add_signal_handler(signal.SIGINT, stop)
        try:
            yield
        finally:
            for number in (*ENDING_SIGNALS, signal.SIGINT):
                loop.remove_signal_handler(number)


def _count(tokens: int) -> str:
    return str(tokens) if tokens < 1_000 else f"{tokens / 1_000:.1f}k" if tokens < 100_000 else f"{tokens // 1_000}k"


async def _serve(chat_session: ChatSession, port: int) -> None:
    """Serve the conversation over HTTP until a signal, or until its client closes it."""
    from signet_reference_harness.channels.http import HttpChannel
    from signet_reference_harness.local_server import serving

    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        token = secrets.token_urlsafe(24)
        print(f"export {TOKEN_VARIABLE}={token}", file=sys.stderr, flush=True)
    channel = HttpChannel(bare_token(token, TOKEN_VARIABLE, remedy=f"give {TOKEN_VARIABLE} letters and digits"))
    conversing = ChannelConversation(channel, lambda: chat_session.session, chat_session.turn)
    channel.interrupt = conversing.interrupt
    # The server handles the other signals.
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, channel.close)
    talking = asyncio.create_task(conversing.run())
    served = asyncio.create_task(serving(channel.app, port))
    await asyncio.wait([talking, served], return_when=asyncio.FIRST_COMPLETED)
    channel.close()
    await talking
    # The last answers are still sent.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(served, CLOSING_S)


async def _close_provider(provider: Provider) -> None:
    with contextlib.suppress(Exception):  # third-party code; its answers are complete
        await provider.aclose()


def _is_screen(environ: Mapping[str, str]) -> bool:
    """Whether input and output are a terminal that can do more than show lines."""
    return sys.stdin.isatty() and sys.stdout.isatty() and environ.get("TERM", "") not in ("", "dumb", "unknown")
