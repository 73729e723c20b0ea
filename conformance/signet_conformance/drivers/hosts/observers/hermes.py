# noqa: INP001 - the program loads this file alone, in a Python of its own
"""A plugin of Hermes Agent that changes nothing: it writes down what the memory manager tells its provider.

While the provider is at work, a lock is held on the file `busy`: the model's answer is out before the manager's worker
has stored the turn, and a provider goes on in threads of its own. Seen are the calls of the manager, and the threads
that the provider's package begins in one; what it hands to a thread of an earlier call, or to an executor, is not. In
the played harness, which takes a provider by itself, the plugin is a provider that does nothing.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path.home() / ".signet-conformance-observed"
_ASKED = json.loads((FOLDER / "asked.json").read_bytes())
_IN_BACKGROUND = ("sync_all", "queue_prefetch_all", "commit_session_boundary_async")
"""Tasks that the manager leaves to its worker."""
_ANSWERED = "is_available"
"""The call whose answer is written down with it."""
_LONGEST_S = 45.0
"""For so long a thread of the provider's is work of the call that began it; one that serves for good is not."""
_PARTS = {"_hermes_user_memory": 2, "plugins": 3}
"""Where the program imports providers: how many parts of a module's name are those of its package."""
_last: list[str] = []
_writing = threading.Lock()
_within = threading.local()


def register(context: Any) -> None:
    """Watch the provider of the manager; in the played harness be one."""
    if hasattr(context, "register_memory_provider"):
        context.register_memory_provider(_observed(_Mute()))
        return
    providers: Any = import_module("plugins.memory")
    manager = import_module("agent.memory_manager").MemoryManager
    load = providers.load_memory_provider
    providers.load_memory_provider = lambda name: _observed(load(name))
    for name in _IN_BACKGROUND:
        if (begins := getattr(manager, name, None)) is not None:
            setattr(manager, name, _awaited(begins))


class _Mute:
    """A provider that does nothing: it is there as often as the one that was recorded, and takes what that took."""

    name = "observer"

    def __init__(self) -> None:
        self._is_there = [args == ["True"] for event, args, _ in _ASKED["recorded"] if event == _ANSWERED]
        if not any(event == "sync_turn" and "messages" in members for event, _, members in _ASKED["recorded"]):
            # One that does not take the conversation is called without it.
            self.sync_turn = _store_turn

    def is_available(self) -> bool:
        """The recorded results of the provider, one after the other: each session may have a process of its own."""
        written = FOLDER / "events.jsonl"
        rows = map(json.loads, written.read_text(encoding="utf-8").splitlines() if written.exists() else ())
        place = sum(row["event"] == _ANSWERED for row in rows)
        return self._is_there[place] if place < len(self._is_there) else True

    def get_tool_schemas(self) -> list[Mapping[str, Any]]:
        """Its tools, which take anything."""
        return [{"name": name, "description": name, "parameters": {"type": "object"}} for name in _ASKED["tools"]]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _ASKED["events"]:
            raise AttributeError(name)
        return lambda *_args, **_kwargs: "Nothing." if name == "handle_tool_call" else None


def _store_turn(_user: str, _reply: str, *, session_id: str = "") -> None:
    """Take a turn without its conversation."""
    del session_id


def _observed(provider: Any) -> Any:
    """Wrap a provider's methods to write down their calls; leave None as it is."""
    for name in _ASKED["events"] if provider is not None else ():
        method = getattr(provider, name, None)
        if callable(method) and not hasattr(method, "observed"):
            # One that takes no attributes goes unobserved.
            with suppress(AttributeError, TypeError):
                setattr(provider, name, _observe(name, method, _package(type(provider).__module__)))
    return provider


def _package(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[: _PARTS.get(parts[0], len(parts))])


def _observe(name: str, method: Callable[..., Any], package: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def observed(*args: Any, **kwargs: Any) -> Any:
        if getattr(_within, "provider", False):
            # The provider called one of its own methods: the manager did not.
            return method(*args, **kwargs)
        members = [*(f"argument {place}" for place, _ in enumerate(args, 1)), *kwargs]
        if name != _ANSWERED:
            _write(name, members)
        before = set(threading.enumerate())
        said: Any = None
        held = _hold()
        _within.provider = True
        try:
            said = method(*args, **kwargs)
            return said
        finally:
            _within.provider = False
            own = [thread for thread in threading.enumerate() if thread not in before and _runs(thread, package)]
            _release(held, (lambda: _join(own)) if own else None)
            if name == _ANSWERED:
                _write(name, members, [str(bool(said))])

    # So that it is not watched twice.
    observed.__dict__["observed"] = True
    return observed


def _awaited(begins: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(begins)
    def begun(manager: Any, *args: Any, **kwargs: Any) -> None:
        # Held before it, so that no instant lies between in which nothing seems to go on.
        held = _hold()
        try:
            begins(manager, *args, **kwargs)
        finally:
            _release(held, manager.flush_pending)

    return begun


def _runs(thread: threading.Thread, package: str) -> bool:
    """Whether a thread runs something of the provider's package: the harness starts threads in the meantime too."""
    target = getattr(thread, "_target", None)
    modules = (type(thread).__module__, getattr(getattr(target, "func", target), "__module__", None) or "")
    return any(module == package or module.startswith(f"{package}.") for module in modules)


def _join(threads: Iterable[threading.Thread]) -> None:
    until = time.monotonic() + _LONGEST_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


def _hold() -> int | None:
    """Hold the lock, which falls with the process too; None where it cannot be held."""
    try:
        held = os.open(FOLDER / "busy", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_SH)
    except OSError:
        os.close(held)
        return None
    return held


def _release(held: int | None, over: Callable[[], Any] | None) -> None:
    """Hold the lock no more, once that returns."""
    if held is None:
        return

    def wait() -> None:
        try:
            if over is not None:
                over()
        finally:
            os.close(held)

    if over is None:
        wait()
        return
    try:
        threading.Thread(target=wait, name="signet-conformance-observer", daemon=True).start()
    except RuntimeError:
        # A program that ends begins no thread.
        os.close(held)


def _write(event: str, members: Iterable[str], args: Sequence[str] = ()) -> None:
    """Write a call down. What fails here is not the provider's failure."""
    with _writing, suppress(OSError):
        if event in _ASKED["rows"] and _last[-1:] == [event]:
            return
        _last[:] = [event]
        line = json.dumps({"event": event, "members": sorted(members), "args": [*args], "cwd": str(Path.cwd())})
        with (FOLDER / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
