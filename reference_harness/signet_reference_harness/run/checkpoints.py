"""What a turn leaves behind while it goes on: an event for who watches, a checkpoint for who resumes."""

from __future__ import annotations

from signet_reference_harness.messages import ToolCall
from signet_reference_harness.providers.completion import CompletionResult
from signet_reference_harness.run.run_journal import RunJournal
from signet_reference_harness.run.session_file import SessionFile
from signet_reference_harness.session.event_queue import EventQueue
from signet_reference_harness.session.watching import Publisher
from signet_reference_harness.tools import ToolResult


class Checkpoints(Publisher):
    """Publishes what it hears of a turn, and keeps of it what is neither asked nor done again."""

    def __init__(self, events: EventQueue, file: SessionFile, journal: RunJournal) -> None:
        super().__init__(events.put)
        self._file, self._journal = file, journal

    def answer(self, answer: CompletionResult) -> None:
        """Keep the answer."""
        self._journal.answer(answer)

    def tool_call(self, call: ToolCall) -> None:
        """Note that the tool is about to run."""
        self._journal.calling(call.name)
        super().tool_call(call)

    def tool_result(self, call: ToolCall, result: ToolResult) -> None:
        """Keep what the tool brought."""
        self._journal.result(result)
        self._file.tool(call.name, ok=result.ok)
        super().tool_result(call, result)

    def compaction(self, summary: str) -> None:
        """Keep the summary."""
        self._file.compaction(summary)
        super().compaction(summary)
