"""Where the time of a run went, as data: its phases, the activities of its workers, the CPU time of its programs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from msgspec import Struct, field

_STARTS = "process starts"
_CONNECTOR = "connector"
_DAEMON = "daemon and recorder"
_RECORDER = "recorder"
_WAITING = "waiting"
_JUDGING = "judging"


class TimePart(StrEnum):
    """An activity of a worker; at each instant it has one, or one that is not measured.

    `group` is its group in the table, `words` its name there.
    """

    group: str
    words: str

    def __new__(cls, value: str, group: str, words: str) -> Self:
        """Make a member from its value, group and words."""
        part = str.__new__(cls, value)
        part._value_, part.group, part.words = value, group, words
        return part

    DAEMON_START = "daemon-start", _STARTS, "daemons"
    RECORDER_START = "recorder-start", _STARTS, "recorders"
    MODEL_START = "model-start", _STARTS, "the harness's models"
    CONNECTOR_START = "connector-start", _STARTS, "connectors, until they answer hello"
    CONNECTOR = "connector", _CONNECTOR, "steps, between its requests"
    REQUESTS = "requests", _DAEMON, "requests of the connector under way"
    RECORDER = "recorder", _RECORDER, "traces, marks and faults that it is told"
    HELD_DELAY = "fault-delay", _WAITING, "for answers that the fault delay holds back"
    HELD_SLOW_BODY = "fault-slow_body", _WAITING, "for bodies that the fault slow_body holds back"
    HELD_HANG = "fault-hang", _WAITING, "for answers that the fault hang never gives: the connector's bounds"
    DAEMON_RESTART = "daemon-restart", _WAITING, "for the daemon to be started again"
    HEALTH = "health", _WAITING, "for the daemon to answer GET /health"
    BACKGROUND = "background-work", _WAITING, "for the connector's work in the background"
    OPEN_REQUESTS = "open-requests", _WAITING, "for requests that outlast their scenario"
    ENDING = "process-ends", _WAITING, "for processes to end"
    NO_WORK = "no-work", _WAITING, "with no scenario left to perform"
    DRAWING = "drawing", _JUDGING, "generated sessions drawn"
    JUDGING = "judging", _JUDGING, "generated sessions judged"


class TimeSpent(Struct, frozen=True):
    """Where the time of a run went.

    `phases` holds wall-clock seconds by phase of the run, one after the other. `parts` holds the activities of the
    `workers` threads of the phase driving: seconds, summed over the threads, and how often. `cpu_s` holds seconds of
    CPU time by program, with that of its children; what cannot be measured here is absent.
    """

    workers: int
    phases: Mapping[str, float]
    parts: Mapping[TimePart, tuple[float, int]]
    cpu_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def wall_s(self) -> float:
        """Wall-clock seconds since the start of the process."""
        return sum(self.phases.values())
