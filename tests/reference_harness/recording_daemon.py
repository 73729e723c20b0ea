"""The recording daemon, as it comes with the suites for plug-ins."""

from signet_conformance.contracts.fakes import (
    CHECKPOINT,
    COMPLETE,
    END,
    EXEC,
    FORGET,
    MODIFY,
    PRE,
    PROMPT,
    RECALL,
    REGISTRY,
    REMEMBER,
    START,
    USUAL,
    Answer,
    RecordingDaemon,
    Request,
)

__all__ = [
    "CHECKPOINT",
    "COMPLETE",
    "END",
    "EXEC",
    "FORGET",
    "MODIFY",
    "PRE",
    "PROMPT",
    "RECALL",
    "REGISTRY",
    "REMEMBER",
    "START",
    "USUAL",
    "Answer",
    "RecordingDaemon",
    "Request",
]
