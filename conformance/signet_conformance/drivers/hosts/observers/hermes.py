# noqa: INP001 - the program loads this file alone, in a Python of its own
"""A plugin of Hermes Agent that changes nothing: it writes down what the memory manager tells its provider.

While the provider is busy with what it was told, a lock is held on the file `busy`: the model's answer is out before
the manager's worker has stored the turn, and a provider goes on in threads of its own. In the played harness, which
takes a provider by itself, it is a provider that does nothing.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path.home() / ".signet-conformance-observed"
_ASKED = json.loads((FOLDER / "asked.json").read_bytes())
_IN_BACKGROUND = ("sync_all", "queue_prefetch_all", "commit_session_boundary_async")
"""What the manager leaves to its worker."""
_SAYS: Mapping[str, Any] = {"handle_tool_call": "Nothing.", "system_prompt_block": "", "prefetch": ""}
_last: list[str] = []
_writing = threading.Lock()


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
    """A provider that does nothing, is there as often as the one that was recorded, and offers the tools it called."""

    name = "observer"

    def __init__(self) -> None:
        self._is_there = iter([args == ["True"] for event, args in _ASKED["recorded"] if event == "is_available"])

    def is_available(self) -> bool:
        """What the provider said that was recorded."""
        return next(self._is_there, True)

    def get_tool_schemas(self) -> list[Mapping[str, Any]]:
        """Its tools, which take anything."""
        return [{"name": name, "description": name, "parameters": {"type": "object"}} for name in _ASKED["tools"]]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _ASKED["events"]:
            raise AttributeError(name)
        return lambda *_args, **_kwargs: _SAYS.get(name)


def _observed(provider: Any) -> Any:
    """The same provider, whose calls are written down; None as it is."""
    for name in _ASKED["events"] if provider is not None else ():
        if callable(method := getattr(provider, name, None)):
            setattr(provider, name, _told(name, method, type(provider).__module__))
    return provider


def _told(name: str, method: Callable[..., Any], module: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def told(*args: Any, **kwargs: Any) -> Any:
        members = [*(f"argument {place}" for place, _ in enumerate(args, 1)), *kwargs]
        before = set(threading.enumerate())
        said = None
        try:
            said = method(*args, **kwargs)
            return said
        finally:
            _write(name, members, [str(said)] if isinstance(said, bool) else [])
            own = [thread for thread in threading.enumerate() if thread not in before and _runs(thread, module)]
            if own:
                _busy_until(lambda: _join(own))

    return told


def _awaited(begins: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(begins)
    def begun(manager: Any, *args: Any, **kwargs: Any) -> None:
        # Begun before it, so that no instant lies between in which nothing seems to go on.
        handed_over = threading.Event()
        _busy_until(lambda: handed_over.wait() and manager.flush_pending())
        try:
            begins(manager, *args, **kwargs)
        finally:
            handed_over.set()

    return begun


def _runs(thread: threading.Thread, module: str) -> bool:
    """Whether a thread runs something of the provider's package: the harness starts threads in the meantime too."""
    runs = getattr(getattr(thread, "_target", None), "__module__", None) or ""
    return runs == module or runs.startswith(f"{module}.")


def _join(threads: Iterable[threading.Thread]) -> None:
    for thread in threads:
        thread.join()


def _busy_until(over: Callable[[], Any]) -> None:
    """Hold the lock until that returns; it falls with the process too."""
    held = os.open(FOLDER / "busy", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_SH)

    def wait() -> None:
        try:
            over()
        finally:
            os.close(held)

    threading.Thread(target=wait, name="signet-conformance-observer", daemon=True).start()


def _write(event: str, members: Iterable[str], args: Sequence[str]) -> None:
    with _writing:
        if event in _ASKED["rows"] and _last[-1:] == [event]:
            return
        _last[:] = [event]
        line = json.dumps({"event": event, "members": sorted(members), "args": args, "cwd": str(Path.cwd())})
        with (FOLDER / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
