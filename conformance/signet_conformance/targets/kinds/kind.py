"""What a kind of connector is: the settings that it reads, what it needs, what is launched for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signet_conformance.targets.needs import Need

if TYPE_CHECKING:
    from signet_conformance.targets import Target

FILE = frozenset({"module", "files"})
LOADED = FILE | {"runtime"}
SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of connector, as `driver` of a profile names it.

    `reads` are its settings beside those of every kind; `instead` tells of a setting which others are not read
    beside it. `command_line` gives the program that speaks signet-driver/1 for a target, and raises TargetError
    naming what this machine lacks; `needs` yields what that takes. `plays` is the member of a host face without
    which it cannot be played, `has_face` whether a harness is played at all. `endings` are those of the files that
    it loads; None leaves it to the runtime. `named` is how a connector of the kind is named in the settings.

    `resumes_anew` tells that a host of the kind resumes a session in another process than the one that began it; None
    leaves it to the face. `own_program` tells that the connector's author provides the program that performs the
    steps, and `process_a_hook` that the connector is a new process at each hook, and remembers nothing.
    """

    name: str
    reads: frozenset[str]
    command_line: Callable[[Target], tuple[str, ...]]
    needs: Callable[[Target], Iterator[Need]]
    instead: Mapping[str, frozenset[str]] = field(default_factory=dict)
    plays: str | None = None
    has_face: bool = True
    endings: tuple[str, ...] | None = None
    named: str = 'such as module = "dist/index.js", a path from the folder of the settings'
    resumes_anew: bool | None = True
    own_program: bool = False
    process_a_hook: bool = False
