"""The operations that a step of a scenario brings about, and the steps that a driver skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache

from signet_conformance.errors import counted, printable
from signet_conformance.facts.calls import COMPLETE, END, PRE, PROMPT, START
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import SkippedMark, StepMark, StepName, marks_of

TOOLS: Mapping[str, frozenset[str]] = {
    "memory_search": frozenset({"memory-recall", "hooks-recall", "memory-search"}),
    "memory_store": frozenset({"memory-remember", "hooks-remember"}),
    "memory_get": frozenset({"memory-get"}),
    "memory_modify": frozenset({"memory-modify", "memory-patch"}),
    "memory_forget": frozenset({"memory-forget", "memory-delete"}),
    "memory_feedback": frozenset({"memory-feedback"}),
    "secret_exec": frozenset({"secrets-exec"}),
}
"""Tool to operations: a connector has the tool if it declares one of them."""
_REASON_CHARS = 160
_FIRST = (START, PROMPT, END)
_OPERATIONS: Mapping[str, frozenset[str]] = {
    StepName.START: frozenset({START}),
    StepName.RESUME: frozenset({START}),
    StepName.RESTART_HOST: frozenset({START}),
    StepName.CLEAR: frozenset({START, END}),
    StepName.FORK: frozenset({START, END}),
    StepName.REOPEN: frozenset({START, END}),
    StepName.PROMPT: frozenset({PROMPT}),
    StepName.SESSIONLESS_PROMPT: frozenset({PROMPT}),
    StepName.END: frozenset({END}),
    StepName.CLOSE: frozenset({END}),
    StepName.COMPACT: frozenset({PRE, COMPLETE}),
    StepName.PRE_COMPACTION: frozenset({PRE}),
    StepName.COMPACTION_COMPLETE: frozenset({COMPLETE}),
    StepName.TOOL: frozenset().union(*TOOLS.values()),
}
"""Step to the operations that it may bring about; those of other operations, such as health, are not known.

A clear, a fork and another conversation end a session, and open one.
"""


@cache
def steps_for(operation: str) -> frozenset[str]:
    """The kinds of step that can bring an operation about; empty if that is not known, as for a checkpoint."""
    return frozenset(kind for kind, operations in _OPERATIONS.items() if operation in operations)


def _brings_about(step: StepMark, operation: str) -> bool:
    if step.step == StepName.TOOL and step.tool is not None:
        return operation in TOOLS.get(step.tool, ())
    return operation in _OPERATIONS.get(step.step or "", ())


def _name_of(step: StepMark) -> str:
    """The kind of a step in words for a reader; a tool step is named with its tool."""
    if step.step == StepName.TOOL:
        return f"tool {printable(step.tool or '', 40)}".rstrip()
    if step.step == StepName.PROMPT and step.other.get("stopped"):
        return "stopped_prompt"
    if step.step == StepName.PROMPT and step.other.get("attached"):
        return "attached_prompt"
    if step.step == StepName.PROMPT and (step.text or "").lstrip().startswith("/"):
        return "a command of the harness"
    return printable(step.step or "a step", 40)


class SkipMeter:
    """Counts the steps that the driver skipped, recording by recording."""

    def __init__(self) -> None:
        self._skipped = Counter[str]()
        self._with_a_tool = 0
        self._performed: set[str] = set()

    def add(self, trace: Trace) -> None:
        """Add one recording."""
        indices = {mark.index for mark in marks_of(trace, SkippedMark)}
        steps = list(marks_of(trace, StepMark))
        names = {_name_of(step) for step in steps if step.index in indices}
        self._skipped.update(names)
        self._with_a_tool += any(name.startswith(StepName.TOOL) for name in names)
        self._performed.update(str(step.step) for step in steps if step.index not in indices)

    def skipped(self) -> Mapping[str, int]:
        """Kind of step to the recordings in which one was skipped, the most first; tools by name if some are used."""
        counts = Counter(self._skipped)
        if self._with_a_tool and StepName.TOOL not in self._performed:
            counts = Counter({name: n for name, n in counts.items() if not name.startswith(StepName.TOOL)})
            counts[StepName.TOOL] = self._with_a_tool
        return _most_first(counts)


def _most_first(counts: Counter[str]) -> Mapping[str, int]:
    return {str(name): counts[name] for name in sorted(counts, key=lambda name: (-counts[name], name))}


def skipped_words(skipped: Mapping[str, int]) -> str:
    """The steps that a driver skipped, in one line: `the driver skipped compact (8 scenarios), tool (21)`; or empty."""
    parts = [
        f"{name} ({counted(number, 'scenario') if place == 0 else number})"
        for place, (name, number) in enumerate(skipped.items())
    ]
    return f"the driver skipped {', '.join(parts)}" if parts else ""


def skipped_for(traces: Iterable[Trace], absent: Collection[str]) -> Sequence[str]:
    """Say which operations were never seen because only skipped steps would have brought them about."""
    by_kinds: dict[str, list[str]] = {}
    marks = [(list(marks_of(trace, StepMark)), {m.index: m for m in marks_of(trace, SkippedMark)}) for trace in traces]
    # What keeps a session from beginning or ending keeps it from being compacted, too.
    for operation in sorted(absent, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST)):
        skips, reasons = Counter[str](), Counter[str]()
        for steps, skipped in marks:
            mine = [step for step in steps if _brings_about(step, operation)]
            if any(step.index not in skipped for step in mine):
                break
            skips.update({_name_of(step) for step in mine})
            reasons.update(f"{why}" for step in mine if (why := skipped[step.index].reason))
        else:
            if skips:
                why = f", since {printable(next(iter(_most_first(reasons))), _REASON_CHARS)}" if reasons else ""
                by_kinds.setdefault(skipped_words(_most_first(skips)) + why, []).append(operation)
    return [f"{words}, and nothing else brings {', '.join(names)} about" for words, names in by_kinds.items()]
