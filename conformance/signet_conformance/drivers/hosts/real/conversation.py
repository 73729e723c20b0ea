"""The steps that every program performs: a session is opened, prompted, compacted, left and resumed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar, cast

from signet_conformance.drivers.hosts.observing import Observations
from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.drivers.hosts.real.process import ProgramProcess
from signet_conformance.drivers.hosts.real.refusals import Refusal

S = TypeVar("S")


class Services:
    """The background services of one home, which keep running when a session ends, as users leave them.

    A service has `idle` (it serves no session now), `has_ended`, and `end()`, which raises StepError if it goes on.
    """

    def __init__(self) -> None:
        self._running: list[Any] = []

    def lease(self, start: Callable[[], S]) -> S:
        """Return the running service, or start one."""
        for service in self._running:
            if not service.has_ended:
                return cast("S", service)
        service = start()
        self._running.append(service)
        return service

    def end(self, *, idle: bool = False) -> None:
        """End all of them; with `idle` those that serve no session. Raises StepError when one does not end."""
        for service in [each for each in self._running if each.idle or not idle]:
            self._running.remove(service)
            service.end()


@dataclass(frozen=True, slots=True)
class Launch:
    """How a program is started for a session: its command, its environment, the folder it works in."""

    command: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    model: str
    """The address of its model."""
    observed: Observations
    """The runs of the connector's commands."""
    settles: Mapping[str, Any] | None = None
    """The connector's messages that it lacks its daemon and that it has it again, and how long to wait for them."""
    services: Services = field(default_factory=Services)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The files that the kit wrote for the program, by their path below its home."""


P = TypeVar("P", bound=ProgramProcess)


class ProcessConversation(ABC, Generic[P]):
    """One session of a program, with its process, its native id, and what the program printed and refused.

    A subclass gives the program's `title` and reads its output. A method that waits raises StepError with the program's
    own words when it fails.
    """

    title = ""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._process: P | None = None
        self._id: str | None = None
        self._over = True
        self._words: list[str] = []
        self._refused: list[Refusal] = []

    @abstractmethod
    def open(self) -> None:
        """Start the program in a new session, and wait until it takes a prompt.

        Raises ConnectorRefusedError when it ends instead, over what the connector's installer wrote.
        """

    @abstractmethod
    def resume(self) -> None:
        """Start the program in the session that was ended."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Give it what its user says, without waiting."""

    @abstractmethod
    def compact(self) -> None:
        """Have it compact the session, without waiting: `is_over` tells when it is done."""

    @abstractmethod
    def clear(self) -> None:
        """Begin a new session in the same program."""

    @property
    def key(self) -> str | None:
        """The program's own id of the session; None as long as it is not known."""
        return self._id

    @property
    def words(self) -> Sequence[str]:
        """The program's output beside the conversation, the newest last."""
        return [*self._words, *(self._process.words if self._process is not None else ())]

    @property
    def refusals(self) -> Sequence[Refusal]:
        """The refused parts of the connector's installation so far."""
        return self._refused

    def is_over(self) -> bool:
        """Whether the turn has ended, by what the program has printed so far."""
        process = self._running
        self._listen(process)
        if process.has_ended and not self._over:
            raise process.failure(f"{self.title} has ended")
        return self._over

    def end(self, *, for_good: bool = True) -> None:
        """Leave the session as a user does, and wait until the program has done what it does then.

        `for_good` is False if the session is resumed later: some programs report an end only for a session that is
        deleted. The others end with their input, and keep their sessions.
        """
        del for_good
        process, self._process = self._process, None
        self._over = True
        if process is not None:
            process.quit(self.title)

    @property
    def _running(self) -> P:
        if self._process is None:
            raise StepError("no session is open: start it first")
        return self._process

    def _listen(self, process: P) -> None:
        """Read what the program has printed by now. A subclass defines this, or an `is_over` that does without."""
        raise NotImplementedError


ProgramConversation: TypeAlias = ProcessConversation[Any]
Open = Callable[[Launch], ProgramConversation]
