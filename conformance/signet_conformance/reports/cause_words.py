"""A cause in words: how widely it shows, and the commands that show it again and explain it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from signet_conformance.errors import counted
from signet_conformance.reports.causes import Cause
from signet_conformance.reports.evidence import known_requirement
from signet_conformance.reports.problems import Share

MAX_OPERATIONS = 8
"""Operations that are named with their calls; of the others only the number."""
MAX_PROBLEMS = 3
"""Problems of one cause that are shown with an example; the others are counted."""
MAX_PAGES = 3
"""Requirements that the command for their pages names."""


def seen(cause: Cause) -> str:
    """How widely a cause shows: scenarios, sessions and calls. Empty where that is once, in the only trace."""
    calls = cause.calls
    if not cause.traces or (cause.of == 1 and calls.total() <= 1):
        return ""
    parts = [f"{cause.traces:,} of {counted(cause.of, _noun(cause))}"] if cause.of > 1 else []
    parts += [counted(cause.sessions, "session")] if cause.sessions else []
    parts += [counted(calls.total(), "call")] if calls else []
    return f"in {', '.join(parts)}{_operations(calls)}"


def _operations(calls: Counter[str]) -> str:
    """The operations of some calls in brackets, with how many are of each where there are several."""
    told = [f"{name} {count:,}" if len(calls) > 1 else name for name, count in calls.most_common(MAX_OPERATIONS)]
    told += [f"{len(calls) - MAX_OPERATIONS} more operations"] if len(calls) > MAX_OPERATIONS else []
    return f" ({', '.join(told)})" if told else ""


def replay_words(cause: Cause, options: Sequence[str], whole: Sequence[str] = ()) -> Sequence[str]:
    """The command that judges the example again; `options` are those of the run, `whole` what names all its traces.

    Empty for the other sides, whose requirements `check -k` does not take.
    """
    requirement = known_requirement(cause.requirement)
    if requirement is not None and requirement.side != "connector":
        return ()
    files = [cause.first.path] if cause.first.path else list(whole) or ["TRACE"]
    return ["signet-conformance", "check", *files, *options, "-k", cause.requirement]


def explain_words(cause: Cause) -> Sequence[str]:
    """The command that shows the pages of its first requirements; empty for rules of somebody's own, without any."""
    names = [name for name in cause.requirements if known_requirement(name) is not None]
    return ["signet-conformance", "explain", *names[:MAX_PAGES]] if names else ()


def seen_of(cause: Cause, share: Share, calls: Counter[str]) -> str:
    """How widely one of its requirements is breached by a problem with these calls; empty where that is once.

    Operations stand beside the count where there are several: what is shown of the example names one of them.
    """
    parts = [f"in {len(share.traces):,} of {counted(cause.of, _noun(cause))}"] if cause.of > 1 and share.traces else []
    several = len(calls) > 1 and calls.total() == share.times
    parts += [f"{share.times:,} times{_operations(calls) if several else ''}"] if share.times > 1 else []
    return ", ".join(parts)


def _noun(cause: Cause) -> str:
    return "scenario" if cause.scenarios else "trace"
