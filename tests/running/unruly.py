"""The reference harness behind a program that misbehaves at prompts of some texts: `end`, `refuse`, `send`, `hang`."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import urllib.parse

if os.environ.get("SIGNET_BYPASS") == "1":
    raise SystemExit("acme wants no bypass")

with subprocess.Popen([sys.executable, "-m", "signet_reference_harness"], stdin=subprocess.PIPE) as harness:
    assert harness.stdin is not None
    for line in sys.stdin:
        request = json.loads(line)
        text = request.get("step", {}).get("text")
        if text == "end":
            print("acme is lost", file=sys.stderr, flush=True)
            os._exit(7)
        elif text == "refuse":
            error = {"type": "KeyError", "message": "no acme\n  here"}
            print(json.dumps({"id": request["id"], "ok": False, "error": error}), flush=True)
        elif text == "send":
            daemon = http.client.HTTPConnection(urllib.parse.urlsplit(os.environ["SIGNET_DAEMON_URL"]).netloc)
            daemon.request("POST", "/api/hooks/user-prompt-submit", b"{}", {"content-type": "application/json"})
            error = {"message": f"acme was answered {daemon.getresponse().status}"}
            print(json.dumps({"id": request["id"], "ok": False, "error": error}), flush=True)
        elif text == "hang":
            threading.Event().wait()
        else:
            harness.stdin.write(line.encode())
            harness.stdin.flush()
    harness.stdin.close()
