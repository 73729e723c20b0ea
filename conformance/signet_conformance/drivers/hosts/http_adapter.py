"""A harness that speaks to a runtime adapter over HTTP (signet-adapter/1): one POST for each method of its lifecycle.

    python -m signet_conformance.drivers.hosts.http_adapter OPTIONS

OPTIONS holds `command` (the server to start) or none, its `url`, and the `paths` of methods that are not served
under their own names. docs/driver-protocol.md is the specification.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from signet_conformance.drivers.hosts.adapter_server import AdapterAnswer, AdapterServer
from signet_conformance.drivers.hosts.protocol import Peer, Skipped, StepError

PROTOCOL = "signet-adapter/1"


@dataclass(slots=True)
class AdapterSession:
    """One session of the harness: who runs it where, and what was said. `fresh` counts since the last compaction.

    `reply` is the model's last.
    """

    agent: str | None
    project: str | None
    key: str = field(default_factory=lambda: str(uuid.uuid4()))
    said: list[str] = field(default_factory=list)
    reply: str | None = None
    fresh: int = 0
    compacting: bool = False

    def params(self, *members: str, **more: Any) -> dict[str, Any]:
        """The parameters of a call: the session's own, then those of the method, without unknown ones."""
        known = {"sessionKey": self.key, "agentId": self.agent, "project": self.project}
        told = {**{name: known[name] for name in ("sessionKey", "agentId", *members)}, **more}
        return {name: value for name, value in told.items() if value is not None}


class HttpAdapter:
    """Performs steps by calling the adapter."""

    def __init__(self, options: Mapping[str, Any], peer: Peer) -> None:
        self._peer = peer
        self._paths: Mapping[str, str] = options.get("paths", {})
        daemon = os.environ.get("SIGNET_DAEMON_URL", "")
        self._server = AdapterServer(options.get("command", ()), options["url"], daemon)
        self._sessions: dict[str, AdapterSession] = {}
        self._calls: list[tuple[str, AdapterAnswer]] = []

    def about(self) -> Mapping[str, Any]:
        """Which protocol the adapter is spoken to in."""
        return {"adapter": PROTOCOL, "awaits_compaction": True}

    def perform(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform one step; the result tells how each call fared."""
        performer = self._STEPS.get(str(step.get("step")))
        if performer is None:
            raise Skipped(f"a runtime adapter is not told of {step.get('step')}")
        session = self._session(step)
        result = performer(self, session, step)
        calls, self._calls = self._calls, []
        if calls and all(answer.absent for _, answer in calls):
            raise Skipped(f"the adapter serves no {' and no '.join(method for method, _ in calls)}")
        noted = [answer.to_json(method) for method, answer in calls]
        return {"session": step.get("session"), "key": session.key, **result, "calls": noted}

    def _session(self, step: Mapping[str, Any]) -> AdapterSession:
        name, kind = str(step.get("session")), step.get("step")
        if kind == "start":
            self._sessions[name] = AdapterSession(step.get("agent"), step.get("project"))
        elif kind == "resume" and name not in self._sessions:
            self._sessions[name] = AdapterSession(
                step.get("agent"), step.get("project"), str(step.get("key") or uuid.uuid4())
            )
        if name not in self._sessions:
            raise StepError(f"session {name!r} is not known: start it first")
        return self._sessions[name]

    def _call(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._server.call(self._paths.get(method, f"/{method}"), params)
        self._calls.append((method, answer))
        return answer.said

    def _start(self, session: AdapterSession, step: Mapping[str, Any]) -> Mapping[str, Any]:
        source = "resume" if step["step"] == "resume" else "startup"
        return {"injected": _injected(self._call("onSessionStart", session.params("project", source=source)))}

    def _prompt(self, session: AdapterSession, step: Mapping[str, Any]) -> Mapping[str, Any]:
        text = str(step.get("text"))
        told = session.params("project", prompt=text, lastAssistantMessage=session.reply)
        said = self._call("onUserPromptSubmit", told)
        self._peer.model_turn(step.get("session"))
        session.reply = str(step.get("reply") or "Understood.")
        session.said += [_line("User", text), _line("Assistant", session.reply)]
        session.fresh += 1
        return {"turn": True, "injected": _injected(said)}

    def _pre_compaction(self, session: AdapterSession, _step: Mapping[str, Any]) -> Mapping[str, Any]:
        if not session.fresh:
            raise Skipped("nothing was said since the last compaction: the harness compacts nothing")
        session.compacting = True
        said = self._call("onPreCompaction", session.params(messageCount=len(session.said)))
        return {"text": said.get("summaryPrompt") or ""}

    def _compaction_complete(self, session: AdapterSession, step: Mapping[str, Any]) -> Mapping[str, Any]:
        if not session.compacting:
            raise Skipped("no compaction is under way")
        session.compacting, session.fresh = False, 0
        self._call("onCompactionComplete", session.params("project", summary=str(step.get("summary") or "")))
        return {}

    def _compact(self, session: AdapterSession, step: Mapping[str, Any]) -> Mapping[str, Any]:
        said = self._pre_compaction(session, step)
        self._peer.model_turn(step.get("session"))
        return {**said, **self._compaction_complete(session, step)}

    def _tell_end(self, session: AdapterSession, reason: str) -> None:
        transcript = "\n".join(session.said)
        self._call("onSessionEnd", session.params("project", reason=reason, transcript=transcript))

    def _clear(self, session: AdapterSession, _step: Mapping[str, Any]) -> Mapping[str, Any]:
        self._tell_end(session, "clear")
        session.key, session.said, session.reply = str(uuid.uuid4()), [], None
        session.fresh, session.compacting = 0, False
        return {"injected": _injected(self._call("onSessionStart", session.params("project", source="clear")))}

    def _end(self, session: AdapterSession, _step: Mapping[str, Any]) -> Mapping[str, Any]:
        self._tell_end(session, "exit")
        return {"ended": True}

    _STEPS: ClassVar[Mapping[str, Callable[[HttpAdapter, AdapterSession, Mapping[str, Any]], Mapping[str, Any]]]] = {
        "start": _start,
        "resume": _start,
        "prompt": _prompt,
        "compact": _compact,
        "pre_compaction": _pre_compaction,
        "compaction_complete": _compaction_complete,
        "clear": _clear,
        "end": _end,
    }

    def flush(self) -> None:
        """Nothing is known of the adapter's background work: it answers when a method's work is done."""

    def close(self) -> None:
        """End the server that was started."""
        self._server.close()


def _line(role: str, text: str) -> str:
    """A text as one line: a second line could look like another speaker's."""
    words = text.replace("\n", " ")
    return f"{role}: {words}"


def _injected(said: Mapping[str, Any]) -> str:
    text = said.get("inject")
    return text if isinstance(text, str) else ""


def main(arguments: Sequence[str]) -> None:
    """Serve standard input."""
    (text,) = arguments
    Peer().serve(lambda peer: HttpAdapter(json.loads(text), peer))


if __name__ == "__main__":
    main(sys.argv[1:])
