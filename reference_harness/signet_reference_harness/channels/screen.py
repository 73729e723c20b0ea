"""The chat on a terminal: finished output scrolls away above, output in progress and the line editor stay below.

The lower part is prompt_toolkit's, and is redrawn as it changes: the unfinished end of the answer, the running tools,
the waiting turns, the line editor and the status. Finished output is written above it once, and is the terminal's.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from prompt_toolkit import layout
from prompt_toolkit.application import Application
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.key_binding.bindings.auto_suggest import load_auto_suggest_bindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import AppendAutoSuggestion
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth
from prompt_toolkit.widgets import SearchToolbar
from rich.console import RenderableType

from signet_reference_harness.channels import AgentOutput, Closing, UserTurn
from signet_reference_harness.channels.conversing import ChannelConversation
from signet_reference_harness.channels.drawing import Blocks, Drawing, in_brief, one_line
from signet_reference_harness.session import events

MENU_ROWS: Final = 8
INPUT_ROWS: Final = 10
LONGEST_PASTED, MOST_LINES_PASTED = 2_000, 10
"""Characters and lines of a pasted block that are shown as they are; a larger one is folded."""
REDRAWN_EVERY_S: Final = 1.0
"""How often the time that an answer has taken is redrawn."""
STYLE: Final = Style.from_dict(
    {
        "mark": "bold ansicyan",
        "status": "ansibrightblack",
        "busy": "ansiyellow",
        "auto-suggestion": "ansibrightblack",
    }
)


class Screen(Closing):
    """A terminal with a line editor, as a channel."""

    kind = "terminal"

    def __init__(
        self,
        *,
        status: Callable[[], Sequence[str]],
        commands: Mapping[str, str],
        history: Path | None,
        colour: bool,
        terminal: tuple[Input, Output],
    ) -> None:
        """`status` returns the facts of the status line. A narrow terminal shows the first of them.

        `commands` are the names that begin with a slash, each with what it does; they are offered while typing.

        `history` is the file of what was typed; None keeps none.
        """
        super().__init__()
        self.conversation: ChannelConversation | None = None
        """The conversation that it shows, once it has begun."""
        self._status = status
        self._drawing = Drawing(colour=colour)
        self._blocks = Blocks()
        self._running: dict[str, events.ToolCalled] = {}
        self._since = 0.0
        self._stopping = False
        self._hint = ""
        self._memory = ""
        """The effect of memory on the answer, for the line under it."""
        self._pending_answer: asyncio.Future[str] | None = None
        """Gets the next line that is typed, which answers a question."""
        self._folded: dict[str, str] = {}
        """Pasted blocks, by the short text that the line shows in their place."""
        self._buffer = Buffer(
            completer=WordCompleter(list(commands), meta_dict=commands, sentence=True),
            complete_while_typing=Condition(lambda: _is_command(self._buffer.text)),
            history=_history(history),
            auto_suggest=AutoSuggestFromHistory(),
            multiline=True,
        )
        self._app = self._application(*terminal, colour=colour)

    def _application(self, source: Input, output: Output, *, colour: bool) -> Application[None]:
        search = SearchToolbar()
        typed = layout.BufferControl(
            self._buffer,
            input_processors=[AppendAutoSuggestion()],
            search_buffer_control=search.control,
            preview_search=True,
        )
        editor = layout.Window(
            typed,
            height=self._editor_height,
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=self._prompt,
        )
        live = layout.Window(layout.FormattedTextControl(self._live), dont_extend_height=True)
        shown = layout.ConditionalContainer(live, Condition(lambda: bool(self._live_rows())))
        facts = layout.FormattedTextControl(self._status_line)
        status = layout.Window(facts, height=1, dont_extend_height=True, style="class:status")
        body = layout.HSplit([shown, editor, search, status])
        menu = layout.Float(CompletionsMenu(max_height=MENU_ROWS), xcursor=True, ycursor=True)
        return Application(
            layout.Layout(layout.FloatContainer(body, [menu]), focused_element=editor),
            key_bindings=merge_key_bindings([load_auto_suggest_bindings(), self._keys()]),
            input=source,
            output=output,
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            style=STYLE,
            erase_when_done=True,
            min_redraw_interval=0.03,
            refresh_interval=REDRAWN_EVERY_S,
        )

    async def run(self) -> None:
        """Show and read until the channel is closed."""
        self.on_close(self._leave)
        with contextlib.suppress(EOFError, OSError):  # the terminal is gone
            await self._app.run_async(pre_run=self._leave_if_closed, set_exception_handler=False)
        self.close()

    def _leave_if_closed(self) -> None:
        if self.closed:
            self._leave()

    def _leave(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    async def send(self, output: AgentOutput) -> None:
        """Show a piece of an answer, or its end."""
        event = output.event
        if isinstance(event, events.RunStarted):
            self._since, self._stopping, self._hint = time.monotonic(), False, ""
        elif isinstance(event, events.ToolCalled):
            self._write(*map(self._drawing.model_block, self._blocks.finish()))
            self._running[event.id] = event
        elif isinstance(event, events.Compacted):
            self.note("The conversation was summarised: the model continues from the summary.")
        elif isinstance(event, events.Notice):
            self.note(event.text)
        elif isinstance(event, events.MemoryUsed):
            self._memory = f"{event.effect.in_brief} (/why)"
        elif isinstance(event, events.StreamOverflow):
            self._blocks.finish()
        for result in output.tool_results if output.streaming else ():
            call = self._running.pop(getattr(event, "id", ""), None)
            note = in_brief(result.content) if result.ok else result.error
            width, arguments = self._width(), {} if call is None else call.arguments
            self._write(self._drawing.tool(result.name, arguments, width, ok=result.ok, note=note))
        if output.streaming:
            self._write(*map(self._drawing.model_block, self._blocks.feed(output.content)))
            self._app.invalidate()
        else:
            self._end_answer(output)

    def _end_answer(self, output: AgentOutput) -> None:
        self._write(*map(self._drawing.model_block, self._blocks.finish()))
        for call in self._running.values():
            self._write(self._drawing.tool(call.name, call.arguments, self._width(), ok=False, note="was not awaited"))
        self._running.clear()
        self._stopping = False
        if self._memory:
            self.note(self._memory)
        self._memory = ""
        if output.error:
            (self.note if output.stopped else self.error)(output.error)

    def show_user(self, turn: UserTurn) -> None:
        """Let a typed turn scroll away as it joins the conversation, with its pasted blocks folded."""
        text = turn.content
        for fold, block in self._folded.items():
            text = text.replace(block, fold)
        self._write(self._drawing.user_block(text))

    def show_reply(self, reply: str) -> None:
        """Show an answer of a conversation that is continued."""
        self._write(self._drawing.model_block(reply))

    def note(self, text: str) -> None:
        """Show a note of the harness."""
        self._write(self._drawing.note(text))

    def error(self, text: str) -> None:
        """Show an error."""
        self._write(self._drawing.error(text))

    async def ask(self, question: str, about: str) -> str | None:
        """Ask the person, whose next line is the answer."""
        self.note(f"{about}\n{question}")
        self._hint = question
        self._pending_answer = asyncio.get_running_loop().create_future()
        try:
            return await self._pending_answer
        finally:
            self._pending_answer, self._hint = None, ""

    def rows(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        """Show a heading, and a row of name and text for each entry."""
        self._write(self._drawing.rows(title, rows, self._width()))

    def _write(self, *drawn: RenderableType) -> None:
        """Write finished output above the lower part, with a blank line before it."""
        if not drawn:
            return
        text = "".join(f"{self._drawing.ansi(each, self._width())}\n" for each in drawn)
        app = self._app
        try:
            if app.is_running:
                app.renderer.erase()
            app.output.write_raw(text.replace("\n", "\r\n"))
            app.output.flush()
        except OSError:
            self.close()
        else:
            app.invalidate()

    def _width(self) -> int:
        # A character in the last column leaves some terminals at odds about where the cursor is.
        return max(self._app.output.get_size().columns - 1, 1)

    def _live_rows(self) -> list[str]:
        """The rows of the lower part: the end of the answer, the running tools, the waiting turns."""
        width = self._width()
        most = max(self._app.output.get_size().rows // 2 - 2, 1)
        answer: list[str] = []
        if self._blocks.tail.strip():
            drawn = self._drawing.model_block(self._blocks.tail)
            answer = self._drawing.ansi(drawn, width).rstrip("\n").split("\n")[-most:]
        rows = answer
        for call in self._running.values():
            drawn = self._drawing.tool(call.name, call.arguments, width, ok=None, note="")
            rows.append(self._drawing.ansi(drawn, width).rstrip("\n"))
        for turn in self.conversation.waiting if self.conversation else ():
            rows.append(f"  + {one_line(turn.content, max(width - 4, 1))}")
        return rows

    def _live(self) -> AnyFormattedText:
        return ANSI("\n".join([*self._live_rows(), ""]))

    def _prompt(self, number: int, wrap_count: int) -> AnyFormattedText:
        return [("class:mark", "> " if number == wrap_count == 0 else "  ")]

    def _editor_height(self) -> layout.Dimension:
        rows = self._app.output.get_size().rows
        menu = MENU_ROWS if has_completions() and _is_command(self._buffer.text) else 0
        return layout.Dimension(min=1 + min(menu, max(rows - 4, 0)), max=max(min(INPUT_ROWS, rows - 3), 1))

    def _status_line(self) -> AnyFormattedText:
        width = self._width()
        if self._hint:
            return [("class:busy", _shorten(self._hint, width))]
        busy = ""
        if self.conversation and self.conversation.is_busy:
            busy = f"{max(int(time.monotonic() - self._since), 0)} s"
            busy = f"stopping {busy}" if self._stopping else f"working {busy}, Ctrl-C stops"
            if width < 50:
                busy = busy.partition(",")[0]
        text = ""
        room = width - get_cwidth(busy) - (2 if busy else 0)
        for fact in self._status():
            longer = f"{text} · {one_line(fact, 60)}" if text else one_line(fact, 60)
            if get_cwidth(longer) > room:
                break
            text = longer
        return [("class:busy", busy), ("", "  " if busy else ""), ("class:status", text)]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter", filter=Condition(lambda: not self._app.layout.is_searching))
        def _enter(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            self._hint = ""
            text = buffer.text
            for fold, block in self._folded.items():
                text = text.replace(fold, block)
            if self._pending_answer is not None and not self._pending_answer.done():
                self._pending_answer.set_result(text)
            elif text.strip():
                self.enqueue(UserTurn(content=text))
                # A full disk costs the entry in the history, and not the turn.
                with contextlib.suppress(OSError):
                    buffer.history.append_string(text)
            buffer.reset()

        @keys.add(Keys.BracketedPaste)
        def _paste(event: KeyPressEvent) -> None:
            block = event.data.replace("\r\n", "\n").replace("\r", "\n")
            lines = block.count("\n") + 1
            if lines > MOST_LINES_PASTED or len(block) > LONGEST_PASTED:
                fold = f"[pasted {len(self._folded) + 1}: {lines} lines, {len(block)} characters]"
                self._folded[fold] = block
                block = fold
            event.current_buffer.insert_text(block)

        @keys.add("escape", "enter")
        def _new_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _stop(event: KeyPressEvent) -> None:
            if self.conversation and self.conversation.interrupt():
                self._stopping = True
            elif self._buffer.text:
                self._buffer.reset()
            else:
                self._hint = "Ctrl-D or /quit leaves the chat"
            event.app.invalidate()

        @keys.add("c-d", filter=Condition(lambda: not self._buffer.text))
        def _leave(_event: KeyPressEvent) -> None:
            self.close()

        @keys.add("c-l")
        def _clear(event: KeyPressEvent) -> None:
            event.app.renderer.clear()

        return keys


def _is_command(text: str) -> bool:
    return text.startswith("/") and "\n" not in text


def _history(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    try:
        path.touch(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _shorten(text: str, width: int) -> str:
    return text if get_cwidth(text) <= width else f"{text[: max(width - 1, 0)]}…"
