"""A driver whose connector leaves a process at each end: it tells the end two seconds after the harness has gone.

`late_end.py OPERATION BODY` is that process.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
import urllib.parse
import uuid

KEY = str(uuid.uuid4())
FOLDER = "/workspace/src/acme-api"
BODY = {"harness": "late", "agentId": "atlas-agent", "sessionKey": KEY, "runtimePath": "plugin"}
held: list[object] = []


def tell(operation: str, body: str) -> None:
    """Send a hook to the daemon."""
    daemon = http.client.HTTPConnection(urllib.parse.urlsplit(os.environ["SIGNET_DAEMON_URL"]).netloc)
    daemon.request("POST", f"/api/hooks/{operation}", body, {"content-type": "application/json"})
    daemon.getresponse().read()


def perform(step: str) -> dict[str, str]:
    """Start at once, and let another process end."""
    if step == "start":
        tell("session-start", json.dumps({**BODY, "project": FOLDER}))
    else:
        told = json.dumps({**BODY, "cwd": FOLDER, "transcriptPath": "/dev/null"})
        command = [sys.executable, __file__, "session-end", told]
        # Its standard input ends with this program, which holds the other side.
        held.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))
    return {"key": KEY}


if len(sys.argv) > 1:
    sys.stdin.read()
    time.sleep(2)  # the delay is what the test is about: an end that comes after its harness
    tell(*sys.argv[1:])
    raise SystemExit

for line in sys.stdin:
    asked = json.loads(line)
    result: object = {"protocol": "signet-driver/1", "steps": ["start", "end"]}
    if asked["op"] == "step":
        result = perform(asked["step"]["step"])
    print(json.dumps({"id": asked["id"], "ok": True, "result": result, "ms": 1.0}), flush=True)
    if asked["op"] == "exit":
        break
