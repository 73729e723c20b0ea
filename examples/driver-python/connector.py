"""A tiny connector: three hooks, bounded, silent if the daemon is away or the user has switched Signet off."""

import http.client
import json
import os
import socket
import threading
import urllib.parse
import uuid

START_S, PROMPT_S, END_S = 2.0, 1.0, 5.0


class Connector:
    """What a harness calls: open a session, submit a prompt before the model's turn, close the session."""

    def __init__(self):
        self.host = urllib.parse.urlsplit(os.environ["SIGNET_DAEMON_URL"]).netloc
        self.agent = os.environ.get("SIGNET_AGENT_ID", "default")
        self.silent = os.environ.get("SIGNET_BYPASS") == "1"
        self.status = None  # of the last answer; "away" if no daemon listened
        self.unsent = []  # sessions whose end is still to be sent

    def open(self, project):
        return self.reopen({"key": str(uuid.uuid4()), "project": project, "turns": []})

    def reopen(self, session):
        self._open(session)
        return session

    def prompt(self, session, text):
        if not session.get("open"):
            self._open(session)
        if not session.get("known"):
            return ""
        answer = self._call("user-prompt-submit", session, PROMPT_S, project=session["project"], userMessage=text)
        if answer.get("sessionKnown") is False:
            self._open(session, healthy=True)
        inject = answer.get("inject")
        return inject if isinstance(inject, str) else ""

    def close(self, session):
        session["open"] = False
        if session.get("known") and session not in self.unsent:
            self.unsent.append(session)
        self.flush()

    def flush(self):
        """Send the ends for which no daemon listened; call it when the harness quits, too."""
        while self.unsent:
            session = self.unsent[0]
            transcript = "\n".join(session["turns"])
            self._call("session-end", session, END_S, cwd=session["project"], transcript=transcript, reason="exit")
            if self.status == "away":
                return
            session.update(known=False, turns=[])
            self.unsent.pop(0)

    def _open(self, session, healthy=None):
        if session.get("refused"):
            return
        if healthy is None:  # right after an answer, no probe is needed
            healthy = not self.silent and self._ask("GET", "/health", None, START_S) is not None
        if healthy:
            self.flush()
        # Once a start has been sent, the daemon may know the session, whatever it answered.
        session["known"] = healthy or session.get("known", False)
        session["open"] = healthy and bool(self._call("session-start", session, START_S, project=session["project"]))
        if healthy and self.status == 409:  # another path holds the session: it is left alone
            session.update(refused=True, known=False, open=False)

    def _call(self, hook, session, bound_s, **members):
        body = {"harness": "example", "agentId": self.agent, "sessionKey": session["key"], "runtimePath": "plugin"}
        answer = None if self.silent else self._ask("POST", f"/api/hooks/{hook}", {**body, **members}, bound_s)
        return answer if isinstance(answer, dict) else {}

    def _ask(self, method, path, body, bound_s):
        headers = {"content-type": "application/json", "x-signet-runtime-path": "plugin"}
        if token := os.environ.get("SIGNET_TOKEN"):
            headers["authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body)
        connection = http.client.HTTPConnection(self.host, timeout=bound_s)
        deadline = threading.Timer(bound_s, lambda: sock.shutdown(socket.SHUT_RDWR))
        self.status = "away"
        try:
            connection.connect()
            self.status = None
            # A socket's own timeout starts anew with every byte: only this bounds the whole answer.
            sock = connection.sock
            deadline.start()
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            self.status = answer.status
            return json.load(answer) if answer.status < 400 else None
        except (OSError, ValueError, http.client.HTTPException):
            return None
        finally:
            deadline.cancel()
            connection.close()
