"""Whether the daemon is well, and what runs where."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from signet_conformance.daemon.timestamps import iso
from signet_conformance.daemon.wire import Answer, Call

if TYPE_CHECKING:
    from signet_conformance.daemon.state.daemon import Daemon


def health(daemon: Daemon, _call: Call) -> Answer:
    """GET /health: whether the daemon is well; what stands beside it depends on the version."""
    stopping = daemon.settings.shutting_down
    body: dict[str, Any] = {
        "status": "shutting_down" if stopping else "healthy",
        "uptime": daemon.clock() - daemon.started_at, "pid": os.getpid(),
        "version": daemon.behaviour.reported, "port": daemon.port, "agentsDir": str(daemon.workspace), "db": True,
    }  # fmt: skip
    kind = daemon.behaviour.health
    if kind == "small":
        return Answer({**body, "updateAvailable": False, "pendingRestart": False})
    body |= {"shuttingDown": stopping, "updateAvailable": False, "pendingRestart": False}
    if kind == "pipeline":
        body["pipeline"] = {
            "extractionRunning": False, "extractionStalled": False, "extractionPending": 0, "extractionBackoffMs": 0,
        }  # fmt: skip
    else:
        body |= {name: {"status": "healthy"} for name in ("dbWriter", "dbReader", "dbRuntime")}
    counts = dict.fromkeys(("total", "memoryMd", "sockets", "inotify", "pipes", "db", "other", "rss", "heapUsed"), 0)
    return Answer({**body, "resources": counts})


def ready(daemon: Daemon, _call: Call) -> Answer:
    """GET /health/live and /health/ready."""
    return Answer({"status": "ok"}, 503 if daemon.settings.shutting_down else 200)


def home(_daemon: Daemon, _call: Call) -> Answer:
    """GET /: a page for people."""
    return Answer(
        None,
        headers={"content-type": "text/html; charset=UTF-8"},
        text="<!DOCTYPE html><title>Embedded Signet daemon</title>",
    )


def status(daemon: Daemon, _call: Call) -> Answer:
    """GET status: what runs where."""
    body = {
        "status": "running", "version": daemon.behaviour.reported, "pid": os.getpid(),
        "uptime": daemon.clock() - daemon.started_at,
        "startedAt": iso(daemon.started_at), "port": daemon.port, "host": "127.0.0.1", "bindHost": "127.0.0.1",
        "networkMode": "localhost", "agentId": "default", "agentsDir": str(daemon.workspace), "memoryDb": True,
    }  # fmt: skip
    return Answer(body)
