"""The transcript captures that an end of session begins in later versions, and the question how far they are."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass


class Captures:
    """The captures of one daemon. They are done at once: a stand-in has nothing to wait for."""

    def __init__(self) -> None:
        self._jobs: dict[str, dict[str, Any]] = {}

    def add(self, transcript: str, agent: str) -> str:
        """Capture `transcript`; the job's id."""
        job = str(uuid.uuid4())
        self._jobs[job] = {"agent": agent, "size": len(transcript)}
        return job

    def status(self, job: str, agent: str) -> dict[str, Any] | None:
        """The job of `agent`, else None."""
        job_entry = self._jobs.get(job)
        return {"id": job, "status": "completed", "error": None} if job_entry and job_entry["agent"] == agent else None
