"""Where the time of a run went, as data: its phases, what its workers were at, the CPU time of its programs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field


class TimePart(StrEnum):
    """An activity of a worker; at each instant it has one, or one that is not measured."""

    DAEMON_START = "daemon-start"
    RECORDER_START = "recorder-start"
    MODEL_START = "model-start"
    CONNECTOR_START = "connector-start"
    CONNECTOR = "connector"
    REQUESTS = "requests"
    RECORDER = "recorder"
    HELD_DELAY = "fault-delay"
    HELD_SLOW_BODY = "fault-slow_body"
    HELD_HANG = "fault-hang"
    DAEMON_RESTART = "daemon-restart"
    HEALTH = "health"
    BACKGROUND = "background-work"
    OPEN_REQUESTS = "open-requests"
    ENDING = "process-ends"
    NO_WORK = "no-work"
    DRAWING = "drawing"
    JUDGING = "judging"


STARTS = "process starts"
CONNECTOR = "connector"
DAEMON = "daemon and recorder"
RECORDER = "recorder"
WAITING = "waiting"
JUDGING = "judging"

GROUPS: Mapping[TimePart, tuple[str, str]] = {
    TimePart.DAEMON_START: (STARTS, "daemons"),
    TimePart.RECORDER_START: (STARTS, "recorders"),
    TimePart.MODEL_START: (STARTS, "the harness's models"),
    TimePart.CONNECTOR_START: (STARTS, "connectors, until they answer hello"),
    TimePart.CONNECTOR: (CONNECTOR, "steps, between its requests"),
    TimePart.REQUESTS: (DAEMON, "requests of the connector under way"),
    TimePart.RECORDER: (RECORDER, "traces, marks and faults that it is told"),
    TimePart.HELD_DELAY: (WAITING, "for answers that the fault delay holds back"),
    TimePart.HELD_SLOW_BODY: (WAITING, "for bodies that the fault slow_body holds back"),
    TimePart.HELD_HANG: (WAITING, "for answers that the fault hang never gives: the connector's bounds"),
    TimePart.DAEMON_RESTART: (WAITING, "for the daemon to be started again"),
    TimePart.HEALTH: (WAITING, "for the daemon to answer GET /health"),
    TimePart.BACKGROUND: (WAITING, "for the connector's work in the background"),
    TimePart.OPEN_REQUESTS: (WAITING, "for requests that outlast their scenario"),
    TimePart.ENDING: (WAITING, "for processes to end"),
    TimePart.NO_WORK: (WAITING, "with no scenario left to perform"),
    TimePart.DRAWING: (JUDGING, "generated sessions drawn"),
    TimePart.JUDGING: (JUDGING, "generated sessions judged"),
}
"""Each part to its group in the table, and its name there."""


class TimeSpent(Struct, frozen=True):
    """Where the time of a run went.

    `phases` holds seconds of the clock on the wall by phase of the run, one after the other. `parts` holds what the
    `workers` threads of the phase driving were at: seconds, summed over the threads, and how often. `cpu_s` holds
    seconds of CPU time by program, that of its children included; what cannot be measured here is absent.
    """

    workers: int
    phases: Mapping[str, float]
    parts: Mapping[TimePart, tuple[float, int]]
    cpu_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def wall_s(self) -> float:
        """Seconds from the start of the process on."""
        return sum(self.phases.values())
