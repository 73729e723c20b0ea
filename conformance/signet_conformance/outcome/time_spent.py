"""Where the time of a run went, as data: its phases, what its workers were at, the CPU time of its programs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field


class Part(StrEnum):
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

GROUPS: Mapping[Part, tuple[str, str]] = {
    Part.DAEMON_START: (STARTS, "daemons"),
    Part.RECORDER_START: (STARTS, "recorders"),
    Part.MODEL_START: (STARTS, "the harness's models"),
    Part.CONNECTOR_START: (STARTS, "connectors, until they answer hello"),
    Part.CONNECTOR: (CONNECTOR, "steps, between its requests"),
    Part.REQUESTS: (DAEMON, "requests of the connector under way"),
    Part.RECORDER: (RECORDER, "traces, marks and faults that it is told"),
    Part.HELD_DELAY: (WAITING, "for answers that the fault delay holds back"),
    Part.HELD_SLOW_BODY: (WAITING, "for bodies that the fault slow_body holds back"),
    Part.HELD_HANG: (WAITING, "for answers that the fault hang never gives: the connector's bounds"),
    Part.DAEMON_RESTART: (WAITING, "for the daemon to be started again"),
    Part.HEALTH: (WAITING, "for the daemon to answer GET /health"),
    Part.BACKGROUND: (WAITING, "for the connector's work in the background"),
    Part.OPEN_REQUESTS: (WAITING, "for requests that outlast their scenario"),
    Part.ENDING: (WAITING, "for processes to end"),
    Part.NO_WORK: (WAITING, "with no scenario left to perform"),
    Part.DRAWING: (JUDGING, "generated sessions drawn"),
    Part.JUDGING: (JUDGING, "generated sessions judged"),
}
"""Part to its group in the table, and its name there."""


class TimeSpent(Struct, frozen=True):
    """Where the time of a run went.

    `phases` holds seconds of the clock on the wall by phase of the run, one after the other. `parts` holds what the
    `workers` threads of the phase driving were at: seconds, summed over the threads, and how often. `cpu_s` holds
    seconds of CPU time by program, that of its children included; what cannot be measured here is absent.
    """

    workers: int
    phases: Mapping[str, float]
    parts: Mapping[Part, tuple[float, int]]
    cpu_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def wall_s(self) -> float:
        """Seconds from the start of the process on."""
        return sum(self.phases.values())
