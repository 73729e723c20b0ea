"""Options of commands that judge: what is declared beside a recording, and the files of known failures."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from signet_conformance.trace import Declared, Trace

_SINGLE = ("harness", "capabilities", "prompt_chars", "bypass", "recovers_s")
"""Members that have one value; the first declaration of it counts."""


def merge_declared(first: Declared, second: Declared) -> Declared:
    """`first` completed by `second`, member by member: lists replace each other, bounds and canaries merge by name."""
    return replace(
        second,
        agents=first.agents or second.agents,
        bounds_s={**second.bounds_s, **first.bounds_s},
        token=first.token or second.token,
        canaries={**second.canaries, **first.canaries},
        **{name: value for name in _SINGLE if (value := getattr(first, name)) is not None},
    )


def words(declared: Declared) -> list[str]:
    """The options of `check` and `record` that declare the same."""
    given = [f"--agent={agent}" for agent in declared.agents]
    given += [] if declared.harness is None else [f"--harness={declared.harness}"]
    given += [f"--bound={name}={seconds:g}" for name, seconds in declared.bounds_s.items()]
    given += [f"--capability={name}" for name in declared.capabilities or ()]
    given += [] if declared.prompt_chars is None else [f"--prompt-chars={declared.prompt_chars}"]
    given += [] if declared.bypass is None else [f"--bypass={declared.bypass}"]
    return [*given, "--token"] if declared.token else given


class Declarations(Struct, frozen=True):
    """What `options` and the profile of target `name` declare.

    Options count before the profile, and both count before the header of a recording.
    """

    options: Declared = field(default_factory=Declared)
    profile: Declared = field(default_factory=Declared)
    name: str | None = None

    def applied_to(self, trace: Trace) -> Trace:
        """The trace, its header completed in place of what it says itself."""
        header = trace.header
        # That a connector sends a token when it is given one does not say that it was given one here.
        profile = replace(self.profile, token=False)
        declared = merge_declared(self.options, merge_declared(profile, header.declared))
        return replace(trace, header=replace(header, declared=declared))

    def words(self) -> Sequence[str]:
        """The options of `check` that declare the same of a recording."""
        return [*([] if self.name is None else [f"--target={self.name}"]), *words(self.options)]


DEFAULT_DAYS = 30
"""How long a written entry is valid, unless the command line gives its last day."""


class KnownOptions(Struct, frozen=True, kw_only=True):
    """Options about known failures, as written on the command line; None for an option that is absent."""

    baseline: str | None = None
    flaky: str | None = None
    write_baseline: str | None = None
    owner: str | None = None
    reason: str | None = None
    expires: str | None = None
