"""What sessions have in common whose program is one process of its own."""

from __future__ import annotations

from collections.abc import Sequence

from signet_conformance.drivers.hosts.real.conversation import Launch
from signet_conformance.drivers.hosts.real.process import ProgramProcess
from signet_conformance.drivers.hosts.real.refused import Refusal


class OneProcess:
    """A session with the process it runs in, its native id, and what the program said and refused."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._process: ProgramProcess | None = None
        self._id: str | None = None
        self._words: list[str] = []
        self._refused: list[Refusal] = []

    @property
    def key(self) -> str | None:
        """The id of the session."""
        return self._id

    @property
    def words(self) -> Sequence[str]:
        """What it says beside the talk."""
        return [*self._words, *(self._process.words if self._process is not None else ())]

    @property
    def refused(self) -> Sequence[Refusal]:
        """What it has refused so far."""
        return self._refused
