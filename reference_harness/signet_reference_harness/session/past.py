"""What a turn had come to in a process that is gone: it is neither asked nor done again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from signet_reference_harness.providers.completion import CompletionResult
from signet_reference_harness.tools import ToolResult


class Past:
    """The model's answers and the results of its tools, each in order. A turn takes them before it asks or runs."""

    def __init__(self, answers: Iterable[CompletionResult] = (), results: Iterable[ToolResult] = ()) -> None:
        self._answers = deque(answers)
        self._results = deque(results)

    def answer(self) -> CompletionResult | None:
        """The next answer that the model has given already; None when it has to be asked."""
        return self._answers.popleft() if self._answers else None

    def result(self) -> ToolResult | None:
        """The result of the next tool, where it was begun already; None when it has to be run."""
        return self._results.popleft() if self._results else None
