# noqa: INP001 - the program loads this file alone, in a Python of its own
"""A plugin of Hermes Agent that changes nothing: it records the calls of the memory manager to its provider.

While the provider works, the plugin holds a lock on the file `busy`, since the manager's worker stores the turn after
the model's answer is out, and a provider may start threads of its own. The plugin sees the manager's calls, and the
threads that the provider's package starts during a call; it does not see work that goes to an older thread or to an
executor. In the played harness, where a plugin registers a provider, it registers one that does nothing.
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
"""Tasks that the manager hands to its worker."""
_ANSWERED = "is_available"
"""The call that is recorded with its return value."""
_LONGEST_S = 45.0
"""The lock waits this long for a provider's thread; one that runs longer is a service, not work of the call."""
_PARTS = {"_hermes_user_memory": 2, "plugins": 3}
"""By the first part of a provider's module name: how many parts name its package."""
_last: list[str] = []
_writing = threading.Lock()
_within = threading.local()


def register(context: Any) -> None:
    """Observe the manager's provider; in the played harness, register a provider."""
    if hasattr(context, "register_memory_provider"):
        context.register_memory_provider(_observed(_Mute()))
        return
    providers: Any = import_module("plugins.memory")
    manager = import_module("agent.memory_manager").MemoryManager
    load = providers.load_memory_provider
    providers.load_memory_provider = lambda name: _observed(load(name))
    for name in _IN_BACKGROUND:
        if (method := getattr(manager, name, None)) is not None:
            setattr(manager, name, _busy_until_flushed(method))


class _Mute:
    """A provider that does nothing. It is available as often as the recorded one, and takes the same arguments."""

    name = "observer"

    def __init__(self) -> None:
        self._is_there = [args == ["True"] for event, args, _ in _ASKED["recorded"] if event == _ANSWERED]
        if not any(event == "sync_turn" and "messages" in members for event, _, members in _ASKED["recorded"]):
            # The manager leaves `messages` out for a provider that does not take it.
            self.sync_turn = _store_turn

    def is_available(self) -> bool:
        """The recorded results, one after the other. Counted in the file, since each session may be a new process."""
        written = FOLDER / "events.jsonl"
        rows = map(json.loads, written.read_text(encoding="utf-8").splitlines() if written.exists() else ())
        place = sum(row["event"] == _ANSWERED for row in rows)
        return self._is_there[place] if place < len(self._is_there) else True

    def get_tool_schemas(self) -> list[Mapping[str, Any]]:
        """The recorded tools; they accept all arguments."""
        return [{"name": name, "description": name, "parameters": {"type": "object"}} for name in _ASKED["tools"]]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _ASKED["events"]:
            raise AttributeError(name)
        return lambda *_args, **_kwargs: "Nothing." if name == "handle_tool_call" else None


def _store_turn(_user: str, _reply: str, *, session_id: str = "") -> None:
    """Do nothing. The signature is that of a provider without `messages`."""
    del session_id


def _observed(provider: Any) -> Any:
    """Wrap a provider's methods to write down their calls; leave None as it is."""
    for name in _ASKED["events"] if provider is not None else ():
        method = getattr(provider, name, None)
        if callable(method) and not hasattr(method, "observed"):
            # A provider whose attributes cannot be set is not observed.
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
            # The provider calls one of its own methods; only the manager's calls count.
            return method(*args, **kwargs)
        members = [*(f"argument {place}" for place, _ in enumerate(args, 1)), *kwargs]
        if name != _ANSWERED:
            _write(name, members)
        before = set(threading.enumerate())
        result: Any = None
        lock = _hold()
        _within.provider = True
        try:
            result = method(*args, **kwargs)
            return result
        finally:
            _within.provider = False
            own = [thread for thread in threading.enumerate() if thread not in before and _runs(thread, package)]
            _release(lock, (lambda: _join(own)) if own else None)
            if name == _ANSWERED:
                _write(name, members, [str(bool(result))])

    # A mark, so that it is not wrapped twice.
    observed.__dict__["observed"] = True
    return observed


def _busy_until_flushed(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def wrapper(manager: Any, *args: Any, **kwargs: Any) -> None:
        # Take the lock before the call: otherwise the work looks finished before it begins.
        lock = _hold()
        try:
            method(manager, *args, **kwargs)
        finally:
            _release(lock, manager.flush_pending)

    return wrapper


def _runs(thread: threading.Thread, package: str) -> bool:
    """Whether a thread runs code of the provider's package; the harness starts threads of its own."""
    target = getattr(thread, "_target", None)
    modules = (type(thread).__module__, getattr(getattr(target, "func", target), "__module__", None) or "")
    return any(module == package or module.startswith(f"{package}.") for module in modules)


def _join(threads: Iterable[threading.Thread]) -> None:
    until = time.monotonic() + _LONGEST_S
    for thread in threads:
        # A thread that is being started is listed, but `join` refuses it until it runs.
        while thread in threading.enumerate() and time.monotonic() < until:
            with suppress(RuntimeError):
                thread.join(max(0.0, until - time.monotonic()))


def _hold() -> int | None:
    """Take the lock, which also ends with the process; None if it cannot be taken."""
    try:
        lock = os.open(FOLDER / "busy", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
    except OSError:
        os.close(lock)
        return None
    return lock


def _release(lock: int | None, await_work: Callable[[], Any] | None) -> None:
    """Release the lock: at once, or in a thread after `await_work` has returned."""
    if lock is None:
        return
    if await_work is None:
        os.close(lock)
        return

    def wait() -> None:
        try:
            await_work()
        finally:
            os.close(lock)

    try:
        threading.Thread(target=wait, name="signet-conformance-observer", daemon=True).start()
    except RuntimeError:
        # The program is ending and starts no more threads.
        os.close(lock)


def _write(event: str, members: Iterable[str], args: Sequence[str] = ()) -> None:
    """Record a call. A failure to write is ignored: it is not the provider's."""
    with _writing, suppress(OSError):
        if event in _ASKED["rows"] and _last[-1:] == [event]:
            return
        _last[:] = [event]
        line = json.dumps({"event": event, "members": sorted(members), "args": [*args], "cwd": str(Path.cwd())})
        with (FOLDER / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
