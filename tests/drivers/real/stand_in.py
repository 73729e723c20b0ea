"""Stand-ins for programs: `stand_in.py NAME ...` speaks as the program of that name does, and asks its model for words.

What a program is told is where its profile puts it: the model's address in its settings or its environment. A user who
types `die` sees it die in the middle of the turn, and one who types `out` has it ask a server elsewhere first. The
variable STAND_IN holds what the program does from its start: `refuses` the connector's installation, or `hangs`. It may
also `stay` somewhere (`stay FILE start`, `stay FILE turn`, `stay FILE end`): it heeds no signal, and there it starts
another program that leaves its group, and says in the file where both are.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any

SETTINGS = {
    "pi": ".pi/agent/models.json",
    "codex": ".codex/config.toml",
    "hermes": ".hermes/config.yaml",
    "opencode": ".config/opencode/opencode.json",
}
PLUGINS = {"pi": ".pi/agent/extensions/signet-pi.js", "opencode": ".config/opencode/plugins/signet.js"}
MODE = os.environ.get("STAND_IN", "")
DEFERRED = {"defers": ["mcp__signet__memory_search"], "defers-nothing": []}
"""What the model finds when it looks for a tool that is not offered to it at first."""
WORDS = "this file has an unknown member: statusLine"
TITLE = "Generate a short, descriptive title (3-7 words) for a conversation."
APART = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(flush=True)\nwhile True: signal.pause()"


def stay(where: str) -> None:
    """Stay for good, if that is where this program stays."""
    does, _, told = MODE.partition(" ")
    file, _, place = told.rpartition(" ")
    if does != "stay" or place != where:
        return
    command = [sys.executable, "-ISc", APART]
    other = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    assert other.stdout is not None
    # It heeds nothing from here on.
    other.stdout.readline()
    draft = Path(f"{file}.{os.getpid()}")
    draft.write_text(
        json.dumps({"folders": [str(Path.home()), str(Path.cwd())], "processes": [os.getpid(), other.pid]})
    )
    draft.rename(file)
    while True:
        time.sleep(3600)


def model() -> str:
    """Where the model is, as host and port."""
    told = os.environ.get("ANTHROPIC_BASE_URL") or (Path.home() / SETTINGS[sys.argv[1]]).read_text()
    found = re.search(r"http://(127\.0\.0\.1:\d+)", told)
    assert found is not None, told
    return found[1]


def turn(text: str, system: str = "") -> None:
    """What a turn comes to: the model is asked once, unless the text says otherwise."""
    stay("turn")
    if text == "silent" or (MODE == "too-short" and text == "/compact"):
        return
    if text == "die":
        print("panic: the index is out of bounds", file=sys.stderr, flush=True)
        os._exit(7)
    if text in ("throw", "abort"):
        place = Path.home() / PLUGINS[sys.argv[1]]
        print(f"Error: nobody awaits it\n    at told (file://{place}:10:3)", file=sys.stderr, flush=True)
        if text == "abort":
            os.abort()
        os._exit(1)
    if text == "out":
        proxy = http.client.HTTPConnection(os.environ["HTTP_PROXY"].removeprefix("http://"), timeout=30)
        proxy.request("GET", "http://telemetry.example.org/")
        proxy.getresponse().read()
    asked = {"model": "scripted", "max_tokens": 100, "system": system, "messages": [{"role": "user", "content": text}]}
    tools = ["ToolSearch"] if MODE in DEFERRED else []
    while True:
        asked["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in tools]
        connection = http.client.HTTPConnection(model(), timeout=60)
        connection.request("POST", "/v1/messages", json.dumps(asked), {"content-type": "application/json"})
        response = connection.getresponse()
        assert response.status == 200
        content = json.loads(response.read())["content"]
        uses = [block for block in content if block["type"] == "tool_use"]
        if not uses:
            return
        assert uses[0]["name"] in tools
        found = uses[0]["input"].get("query", "").removeprefix("select:")
        if uses[0]["name"] == "ToolSearch" and found in DEFERRED[MODE]:
            tools.append(found)
        result = {"type": "tool_result", "tool_use_id": uses[0]["id"], "content": []}
        said = [result, {"type": "text", "text": "Done."}]
        asked["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": said}]


def say(**message: Any) -> None:
    """Write a line of JSON."""
    print(json.dumps(message), flush=True)


def heard() -> Iterator[dict[str, Any]]:
    """The lines that come."""
    if MODE == "hangs":
        signal.pause()
    stay("start")
    yield from map(json.loads, sys.stdin)
    stay("end")


def pi() -> None:
    """The program pi: `--mode rpc`."""
    session = 1
    if MODE == "refuses":
        say(type="extension_error", extensionPath="/x/signet.js", event="load", error=WORDS)
    for asked in heard():
        kind, data = asked["type"], {}
        if kind == "new_session":
            session += 1
        if kind == "get_state":
            data = {"sessionId": f"p{session}", "sessionFile": "/x/p.jsonl"}
        if kind == "compact":
            turn("Summarize.")
        say(type="response", id=asked["id"], command=kind, success=True, data=data)
        if kind == "prompt":
            turn(asked["message"])
            say(type="agent_end")


def claude() -> None:
    """Claude Code: JSON on both streams."""
    session, servers = sys.argv[-1], 0
    kept = Path.home() / f"{session}.said"
    if "--resume" in sys.argv and not kept.exists():
        sys.exit(f"No conversation found with session ID: {session}")
    for asked in heard():
        if asked["type"] == "control_request":
            about = asked["request"]["subtype"] == "mcp_status"
            # The server of the connector is there when it is asked for the second time.
            statuses = [{"name": "signet", "status": "connected" if servers else "pending"}]
            servers += about
            say(type="control_response", response={"subtype": "success", "response": {"mcpServers": statuses}})
            continue
        assert servers > 1, "a turn before the server of the connector is there"
        text = asked["message"]["content"]
        if text == "/clear":
            session = "cleared"
        else:
            turn(text)
        (Path.home() / f"{session}.said").touch()
        say(type="result", session_id=session, is_error=False)


def codex() -> None:
    """Codex: `app-server`."""
    threads, trusted = 0, set()
    for asked in heard():
        method, result = asked["method"], {}
        if method == "hooks/list":
            errors = [{"path": "/x/hooks.json", "message": WORDS}] if MODE == "refuses" else []
            hook = {"key": "/x/hooks.json:stop:0:0", "currentHash": "sha256:1", "trustStatus": "untrusted"}
            warnings = ["clamping SessionEnd hook timeout to 3s in /x/hooks.json"]
            result = {"data": [{"errors": errors, "warnings": warnings, "hooks": [hook]}]}
        if method == "config/batchWrite":
            trusted |= set(asked["params"]["edits"][0]["value"])
        if method in ("thread/start", "thread/resume"):
            if method == "thread/start" and "/x/hooks.json:stop:0:0" not in trusted:
                os._exit(9)
            threads += method == "thread/start"
            result = {"thread": {"id": f"t{threads}"}}
        if "id" in asked:
            say(jsonrpc="2.0", id=asked["id"], result=result)
        if method in ("thread/start", "thread/resume"):
            say(jsonrpc="2.0", method="mcpServer/startupStatus/updated", params={"name": "signet", "status": "ready"})
        if method in ("turn/start", "thread/compact/start"):
            turn(asked["params"].get("input", [{"text": "Summarize."}])[0]["text"])
            say(jsonrpc="2.0", method="turn/completed", params={"turn": {"id": "u1"}})


def hermes() -> None:
    """Hermes: the Agent Client Protocol. Its model is told of the agent that was installed when it started."""
    sessions = 0
    file = Path.home() / ".config" / "connector.json"
    agent = str(json.loads(file.read_text()).get("agent")) if file.exists() else ""
    for asked in heard():
        method, result = asked["method"], {}
        if method == "session/new":
            sessions += 1
            result = {"sessionId": f"h{sessions}"}
        text = asked["params"]["prompt"][0]["text"] if method == "session/prompt" else ""
        late = MODE == "answers-first" and text == "/compact"
        if text and not late:
            turn(text, agent)
        say(jsonrpc="2.0", id=asked["id"], result=result)
        if late:
            # Nothing tells this program that the kit has gone on: who takes the answer for the end has, by then.
            for part in (text, "Summarize the rest."):
                time.sleep(0.5)
                turn(part)
        if method == "session/prompt" and MODE == "titles":
            # Beside the talk: the next turn does not wait for it, and comes after it to the model.
            turn("User: Which database?", TITLE)


class Server(BaseHTTPRequestHandler):
    """OpenCode: `serve`, with its events beside."""

    sessions = 0
    late: threading.Timer | None = None
    events: SimpleQueue[Mapping[str, Any]] = SimpleQueue()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is that of the library
        """Say nothing of requests."""

    def _answer(self, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        """The events, or a session."""
        if self.path != "/event":
            self._answer({"id": self.path.rsplit("/", 1)[-1]})
            return
        self.send_response(200)
        self.end_headers()
        while True:
            # As programs in JavaScript write JSON: nothing beyond ASCII is escaped.
            said = json.dumps(self.events.get(), ensure_ascii=False)
            self.wfile.write(f"data: {said}\n\n".encode())

    def do_POST(self) -> None:
        """A new session, a prompt, or a summary."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/session":
            Server.sessions += 1
            self._answer({"id": f"o{Server.sessions}"})
            return
        if self.path.endswith("/summarize"):
            turn("Summarize.")
            self._answer(True)
            # Told beside the answer, and sometimes long after it.
            Server.late = threading.Timer(2.0, self._tell_idle)
            Server.late.start()
            return
        self._answer(None)
        if Server.late is not None and Server.late.is_alive():
            Server.late.cancel()
            self._tell_idle()
            time.sleep(0.5)
        said = body["parts"][0]["text"]
        if said == "lose":
            self.events.put({"type": "session.error", "properties": {"sessionID": self.path.split("/")[2]}})
            return
        self.events.put({"type": "message.updated", "properties": {"text": said}})
        turn(said)
        self._tell_idle()

    def _tell_idle(self) -> None:
        self.events.put({"type": "session.idle", "properties": {"sessionID": self.path.split("/")[2]}})

    def do_DELETE(self) -> None:
        """A session is deleted."""
        stay("end")
        self._answer(True)
        self.events.put({"type": "session.deleted", "properties": {}})


def opencode() -> None:
    """Serve until the end."""
    if MODE == "hangs":
        signal.pause()
    if MODE.startswith("refuses"):
        member = "plugin" if MODE == "refuses" else "provider"
        file = Path.home() / SETTINGS["opencode"]
        print(f"\x1b[91mError: \x1b[0mConfiguration is invalid at {file}\n\u21b3 {WORDS} {member}", file=sys.stderr)
        sys.exit(1)
    stay("start")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    Server.events.put({"type": "server.connected", "properties": {}})
    print(f"opencode server listening on http://127.0.0.1:{server.server_port}", flush=True)
    # The end of its input does not end it.
    threading.Thread(target=server.serve_forever, daemon=True).start()
    signal.pause()


if MODE.startswith("stay"):
    for heedless in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(heedless, signal.SIG_IGN)
{"pi": pi, "claude": claude, "codex": codex, "hermes": hermes, "opencode": opencode}[sys.argv[1]]()
