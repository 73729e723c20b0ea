"""Plays Hermes Agent to a memory provider: one program, one session at a time, the recall after the answer.

    python -m signet_conformance.drivers.hosts.python_plugin OPTIONS

The provider's package is loaded unchanged; `agent.memory_provider`, which has its base class, is a stand-in. The agent
is the SIGNET_AGENT_ID of the process.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import logging
import os
import re
import sys
import sysconfig
import threading
import time
import traceback
import types
import uuid
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar
from urllib.parse import urlsplit

from signet_conformance.drivers.hosts.protocol import Lateness, NotLoadedError, Peer, Projects, Skipped, StepError
from signet_conformance.drivers.hosts.registry import accept_tools
from signet_conformance.drivers.hosts.tools import demand_no_own_command, use_tool

MAX_REQUESTS = 100
MAX_PLACES = 3
_LINE = re.compile(rb"([A-Z]+) (/[^ ?]*)[^ ]* HTTP/1\.[01]\r\n")
_FOREIGN_CODE = tuple({*sysconfig.get_paths().values(), str(Path(__file__).parents[2]), "<"})
"""Prefixes of paths whose code is not the connector's: the interpreter, its packages, the kit."""


class SentRequests:
    """Notes the requests that `http.client`, on which most Python clients are built, sends to the daemon."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._port = urlsplit(os.environ.get("SIGNET_DAEMON_URL", "")).port
        self._requests: list[dict[str, Any]] = []
        sys.addaudithook(self._note_request)

    def take(self) -> list[dict[str, Any]]:
        """Return and forget the requests since the last call, each with method, path and the places in the code."""
        with self._lock:
            requests, self._requests = self._requests, []
        return requests

    def _note_request(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "http.client.send" or not isinstance(data := args[1], bytes):
            return
        if (line := _LINE.match(data)) is None or len(self._requests) >= MAX_REQUESTS:
            return
        if getattr(args[0], "port", None) != self._port:
            return
        at = _places(inspect.currentframe())
        with self._lock:
            if at:
                self._requests.append({"method": line[1].decode(), "path": line[2].decode(errors="replace"), "at": at})


def _places(frame: FrameType | None) -> list[str]:
    places: list[str] = []
    while frame is not None and len(places) < MAX_PLACES:
        file = frame.f_code.co_filename
        if not file.startswith(_FOREIGN_CODE):
            places.append(f"{file}:{frame.f_lineno}")
        frame = frame.f_back
    return places


SETTLE_S = 0.4
FLUSH_S = 25.0
PACKAGE = "hermes_user_memory_plugin"


def load_provider(path: Path) -> Any:
    """Load the package and return the provider that it registers. Raises NotLoadedError if it cannot be loaded."""
    stand_in = types.ModuleType("agent.memory_provider")
    stand_in.__dict__["MemoryProvider"] = type("MemoryProvider", (), {})
    sys.modules["agent"] = types.ModuleType("agent")
    sys.modules["agent.memory_provider"] = stand_in
    spec = importlib.util.spec_from_file_location(PACKAGE, path, submodule_search_locations=[str(path.parent)])
    if spec is None or spec.loader is None:
        raise StepError(f"{path} is not a Python package")
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    # Hermes imports a plugin in its own folder by this name, and the one of Signet 0.109 imports itself by it.
    for name in ("plugins", "plugins.memory"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["plugins.memory.signet"] = module
    context = _Context()
    try:
        spec.loader.exec_module(module)
        module.register(context)
    except Exception as error:
        traceback.print_exc()
        raise NotLoadedError(f"{path} cannot be loaded: {error!r}") from error
    if context.provider is None:
        raise NotLoadedError(f"{path}: register(ctx) registers no memory provider")
    return context.provider


class _Context:
    """The argument of `register(ctx)`."""

    provider: Any = None

    def register_memory_provider(self, provider: Any) -> None:
        """Take the provider."""
        self.provider = provider


def _by_name(schemas: Any) -> Mapping[str, Any]:
    """Tools by name, as the harness reads them: bare, or wrapped in `function`."""
    wrapped = [each for each in schemas or () if isinstance(each, Mapping)]
    bare = [each["function"] if isinstance(each.get("function"), Mapping) else each for each in wrapped]
    return {str(each.get("name") or ""): each.get("parameters") for each in bare}


class OwnMemory:
    """The entries of the harness's own tool `memory`, by target."""

    def __init__(self) -> None:
        self._entries: dict[str, list[str]] = {}

    def write(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add, replace or remove one entry; return the tool's result."""
        action = asked.get("action")
        content, old = (str(asked.get(name) or "").strip() for name in ("content", "old_text"))
        entries = self._entries.setdefault(_target_of(asked), [])
        places = [place for place, entry in enumerate(entries) if old and old in entry]
        if not content and action != "remove":
            return {"success": False, "error": "Content cannot be empty."}
        if action != "add" and not places:
            return {"success": False, "error": f"No entry matched '{old}'."}
        if action == "add":
            entries.append(content)
        else:
            entries[places[0] : places[0] + 1] = [content] if action == "replace" else []
        return {"success": True, "done": True, "target": _target_of(asked), "entry_count": len(entries)}


def _target_of(asked: Mapping[str, Any]) -> str:
    return str(asked.get("target") or "memory")


class ProviderProgram:
    """The memory manager of the harness around one provider."""

    def __init__(self, options: Mapping[str, Any], peer: Peer) -> None:
        self._face = options["face"]
        self._names: Mapping[str, str] = options.get("tools", {})
        self._peer = peer
        # The harness writes a provider's log to a file; here it goes to standard error.
        logging.basicConfig(level=logging.INFO, format="[%(levelname)s] %(name)s: %(message)s", stream=sys.stderr)
        self._own_threads = set(threading.enumerate())
        self._sent = SentRequests()
        self._provider = load_provider(Path(options["module"]))
        self._calls: list[dict[str, Any]] = []
        self._projects = Projects()
        self._session = self._previous_session = ""
        self._is_available = False
        self._is_reported = False
        self._tools: dict[str, Any] = {}
        self._messages: list[dict[str, Any]] = []
        self._compacted_messages, self._compacting = 0, False
        self._turns = 0
        self._prompt_built = False
        """Whether the harness has built the session's system prompt, which it keeps."""
        self._turn: tuple[str, str] | None = None
        self._memory = OwnMemory()

    def about(self) -> Mapping[str, Any]:
        """The harness that is played, and the steps that it performs."""
        face = f"{self._face['harness']}-{self._face['version']}"
        return {"harness": self._face["harness"], "face": face, "steps": [*self._STEPS]}

    def perform(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform one step, then wait a moment for the provider's threads, as if the user read the answer."""
        kind = str(step.get("step"))
        performer = self._STEPS.get(kind)
        if performer is None:
            raise Skipped(f"{self._face['harness']} has no counterpart for {kind}")
        if not self._session and kind not in ("start", "resume", "restart_host"):
            raise StepError("no session is open: start it first")
        try:
            result = performer(self, step)
        finally:
            if kind == "tool" and not step.get("more"):
                self._end_turn()
            self._settle(SETTLE_S)
        calls, self._calls = self._calls, []
        records = {"calls": calls, "sent": self._sent.take()}
        return {"session": step.get("session"), "key": self._session, **result, **records}

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the provider as the manager does: skip a missing one, note an exception.

        A provider that was not available when the session began is not called in it.
        """
        method: Callable[..., Any] | None = getattr(self._provider, name, None)
        called = self._is_available or name == "is_available"
        if method is None or not called or name not in self._face["calls"]:
            return None
        began = time.perf_counter()
        noted: dict[str, Any] = {"event": name}
        self._calls.append(noted)
        lateness = Lateness(os.getpid())
        try:
            return method(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - a provider's failure never stops the turn
            traceback.print_exc()
            place = traceback.extract_tb(error.__traceback__)[-1]
            noted["thrown"] = f"{error!r}\nat {place.filename}:{place.lineno}"
            # The memory manager catches what a provider raises, so the turn continues.
            noted["lost"] = False
        finally:
            noted["ms"] = round((time.perf_counter() - began) * 1000, 3)
            noted["late_ms"] = lateness.end()

    def _start(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        self._session = str(step.get("key") or uuid.uuid4())
        self._begin_anew()
        self._prompt_built = step["step"] != "start" and self._prompt_file().is_file()
        # The harness passes no project: a provider sees the current folder.
        os.chdir(self._projects.folder(step.get("project")))
        home = Path.home() / ".hermes"
        home.mkdir(exist_ok=True)
        self._is_available = bool(self._call("is_available"))
        early = self._call("get_tool_schemas")
        if self._is_available and "thrown" in self._calls[-1]:
            # The harness asks for the tools first, and does not register a provider that fails there.
            self._is_available = False
        context = {
            "session_id": self._session,
            "platform": "cli",
            "hermes_home": str(home),
            "agent_context": "primary",
            "agent_identity": "default",
            "agent_workspace": "hermes",
        }
        self._call("initialize", **context)
        self._accept_tools(_by_name(early), _by_name(self._call("get_tool_schemas")))
        return {"opened": self._is_available}

    def _begin_anew(self) -> None:
        self._messages, self._turns, self._compacted_messages, self._compacting = [], 0, 0, False
        self._prompt_built = False

    def _accept_tools(self, early: Mapping[str, Any], late: Mapping[str, Any]) -> None:
        """Keep the usable ones of the tools that the provider lists before and after `initialize`; report them once."""
        rules = self._face.get("registry", {}).get("tools", {})
        routed = early if rules.get("asked") == "before-initialisation" else late
        accepted, facts = accept_tools({**routed, **late}, self._face, self._names)
        rows = [
            {"file": f"the tool {name}", "accepted": False, "words": rules["not_asked_words"].replace("{name}", name)}
            for name in accepted
            if name not in routed
        ]
        self._tools = {name: accepted[name] for name in accepted if name in routed}
        if not self._is_available or self._is_reported:
            return
        self._is_reported = True
        offered = [name for name in self._face["calls"] if callable(getattr(self._provider, name, None))]
        numbers = {"handlers": len(offered), "tools": len(self._tools), "refused": len(late) - len(self._tools)}
        self._peer.tell_about({"installed": [*facts["installed"], *rows], "registered": [numbers]})

    def _prompt(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        text = str(step.get("text"))
        demand_no_own_command(text)
        self._turns += 1
        block = None
        if not self._prompt_built:
            block = self._call("system_prompt_block")
            self._mark_prompt_built()
        self._call("on_turn_start", self._turns, text)
        injected = self._call("prefetch", text, session_id=self._session)
        self._messages.append({"role": "user", "content": text})
        given = [*_model_texts("system_prompt_block", block), *_model_texts("prefetch", injected)]
        self._peer.model_turn(step.get("session"), given)
        self._turn = text, str(step.get("reply") or "Understood.")
        if not step.get("more"):
            self._end_turn()
        return {"turn": True, "injected": injected or ""}

    def _prompt_file(self) -> Path:
        """Where the harness stores the session's system prompt, for a process that resumes the session."""
        return Path.home() / ".hermes" / "sessions" / f"{sha256(self._session.encode()).hexdigest()[:32]}.prompt"

    def _mark_prompt_built(self) -> None:
        self._prompt_built = True
        file = self._prompt_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    def _end_turn(self) -> None:
        """End the model's turn; then the harness stores the turn and prefetches for the next one."""
        if self._turn is None:
            return
        text, reply = self._turn
        self._turn = None
        self._messages.append({"role": "assistant", "content": reply})

        more = {"messages": list(self._messages)} if self._takes("sync_turn", "messages") else {}

        def after() -> None:
            self._call("sync_turn", text, reply, session_id=self._session, **more)
            self._call("queue_prefetch", text, session_id=self._session)

        worker = threading.Thread(target=after, name="harness-memory", daemon=True)
        worker.start()
        worker.join()

    def _takes(self, method: str, name: str) -> bool:
        """Whether a method of the provider takes an argument of that name, by its signature, as the harness checks."""
        try:
            parameters = inspect.signature(getattr(self._provider, method)).parameters
        except (AttributeError, TypeError, ValueError):
            return True
        return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())

    def _tool(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        if step.get("tool") in self._face.get("own_tools", ()):
            return self._use_own_memory(step.get("session"), step.get("arguments") or {})

        def run(name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
            text = self._call("handle_tool_call", name, arguments)
            self._add_tool_call(name, arguments, str(text or ""))
            return str(text or ""), text is None

        return use_tool(step, self._tools, self._names, run, self._peer.hand_over)

    def _add_tool_call(self, name: str, arguments: Mapping[str, Any], text: str) -> None:
        """Add the model's tool call and its result to the conversation."""
        if self._turn is None:
            return
        call_id = f"call_{uuid.uuid4().hex}"
        asked = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": call_id, "type": "function", "function": asked}
        self._messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        self._messages.append({"role": "tool", "name": name, "content": text, "tool_call_id": call_id})

    def _use_own_memory(self, session: object, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write with the harness's own tool; notify the provider if that succeeded."""
        self._peer.hand_over(session, asked)
        result = self._memory.write(asked)
        self._add_tool_call("memory", asked, json.dumps(result))
        if result["success"]:
            about = {
                "write_origin": "assistant_tool",
                "execution_context": "foreground",
                "session_id": self._session,
                "platform": "cli",
                "tool_name": "memory",
                "tool_call_id": f"call_{uuid.uuid4().hex}",
                **({"old_text": str(asked["old_text"])} if asked.get("old_text") else {}),
            }
            more = {"metadata": about} if self._takes("on_memory_write", "metadata") else {}
            written = (str(asked.get("action")), _target_of(asked), str(asked.get("content") or ""))
            self._call("on_memory_write", *written, **more)
        return {"text": json.dumps(result), "content": result, "is_error": not result["success"]}

    def _pre_compaction(self, _step: Mapping[str, Any]) -> Mapping[str, Any]:
        if len(self._messages) <= self._compacted_messages:
            raise Skipped("nothing was said since the last compaction, so the harness compacts nothing")
        self._compacting = True
        text = self._call("on_pre_compress", list(self._messages)) or ""
        return {"text": text, "given": _model_texts("on_pre_compress", text)}

    def _compaction_complete(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Replace the history by the summary, and continue the session under a new id."""
        if not self._compacting:
            raise Skipped("no compaction is under way")
        before, self._session = self._session, str(uuid.uuid4())
        self._call("on_session_end", list(self._messages))
        block = self._call("system_prompt_block")
        self._mark_prompt_built()
        self._messages = [{"role": "user", "content": str(step.get("summary") or "")}]
        self._compacted_messages, self._compacting = 1, False
        self._call("on_session_switch", self._session, parent_session_id=before, reset=False, reason="compression")
        return {"given": _model_texts("system_prompt_block compression", block)}

    def _compact(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        result = dict(self._pre_compaction(step))
        self._peer.model_turn(step.get("session"), result.pop("given"))
        return {**result, **self._compaction_complete(step)}

    def _clear(self, _step: Mapping[str, Any]) -> Mapping[str, Any]:
        self._switch(str(uuid.uuid4()), "new_session", reset=True)
        return {"opened": True}

    def _fork(self, _step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Branch: continue in a copy of the conversation under another id."""
        self._switch(str(uuid.uuid4()), "branch")
        return {"opened": True}

    def _reopen(self, _step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return to the session that was left by a clear, a branch or a compression."""
        if not self._previous_session:
            raise Skipped("this program has no earlier session to return to")
        self._switch(self._previous_session, "resume")
        return {"opened": True}

    def _switch(self, session: str, reason: str, *, reset: bool = False) -> None:
        self._previous_session, self._session = self._session, session
        self._call("on_session_end", list(self._messages))
        if reset:
            self._begin_anew()
        self._call("on_session_switch", session, parent_session_id=self._previous_session, reset=reset, reason=reason)

    def _close_window(self, _step: Mapping[str, Any]) -> Mapping[str, Any]:
        """End the session; the program and its provider keep running."""
        key, self._session = self._session, ""
        self._call("on_session_end", list(self._messages))
        return {"key": key, "ended": True}

    def _end(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        ended = self._close_window(step)
        self._call("shutdown")
        self._is_available = False
        return ended

    def _settle(self, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        for thread in set(threading.enumerate()) - self._own_threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def flush(self) -> None:
        """Wait for every thread that the provider has started."""
        self._settle(FLUSH_S)

    def close(self) -> None:
        """Quit; end an open session first."""
        if self._session:
            self._end({})
        self._settle(FLUSH_S)

    _STEPS: ClassVar[Mapping[str, Callable[[ProviderProgram, Mapping[str, Any]], Mapping[str, Any]]]] = {
        "start": _start,
        "resume": _start,
        "restart_host": _start,
        "prompt": _prompt,
        "tool": _tool,
        "compact": _compact,
        "pre_compaction": _pre_compaction,
        "compaction_complete": _compaction_complete,
        "clear": _clear,
        "fork": _fork,
        "reopen": _reopen,
        "end": _end,
        "close": _close_window,
    }


def _model_texts(source: str, text: object) -> Sequence[Mapping[str, str]]:
    """The text that a call of the provider returned for the model, as a list; empty without one."""
    return [{"source": source, "text": text}] if isinstance(text, str) and text.strip() else []


if __name__ == "__main__":
    Peer.play(ProviderProgram)
