"""The driver protocol signet-driver/1 for a host in Python; project folders, programs, and delays by a busy machine."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol, TextIO

from signet_conformance.files.json_values import parse_value

PROTOCOL = "signet-driver/1"
LONGEST_MESSAGE = 2000
MOST_PRINTED = 16_000
"""How many characters of a connector's output in one step the answer holds."""


class StepError(Exception):
    """Raised when a step cannot be performed; its message is for the reader of the kit's error."""


class NotLoadedError(Exception):
    """Raised when a harness cannot load the connector: what was wrong, in the words of harness or runtime."""


class Skipped(Exception):  # noqa: N818 - an outcome of the step, not an error
    """Raised when the connector or its harness has no counterpart for a step: answered with `skipped`."""


class Host(Protocol):
    """One harness with its connector inside."""

    def about(self) -> Mapping[str, Any]:
        """Describe the host, for the answer to `hello`."""

    def perform(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform one step; the result is what the answer holds."""

    def flush(self) -> None:
        """Wait until the connector has finished what it does in the background."""

    def close(self) -> None:
        """End the connector as the harness ends it when the user quits."""


class CapturedOutput:
    """A stream that keeps what is printed to it, up to a limit, and passes it on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._kept: list[str] = []
        self._left = MOST_PRINTED

    def write(self, text: str) -> int:
        """Keep a text and pass it on."""
        self.note(text)
        return self._stream.write(text)

    def note(self, text: str) -> None:
        """Keep a text that was printed elsewhere."""
        with self._lock:
            if self._left > 0:
                self._kept.append(text[: self._left])
                self._left -= len(text)

    def take(self) -> str:
        """Return the output since the last call."""
        with self._lock:
            texts, self._kept, self._left = self._kept, [], MOST_PRINTED
        return "".join(texts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Peer:
    """The kit at the other end of stdin and stdout."""

    def __init__(self) -> None:
        # Whatever a connector prints must not reach the kit: descriptor 1 becomes standard error.
        self._out: IO[bytes] = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        self._tells: frozenset[str] = frozenset()
        self._printed = CapturedOutput(sys.stderr)
        sys.stdout = sys.stderr = self._printed

    def serve(self, open_host: Callable[[Peer], Host]) -> None:
        """Answer requests until `exit` or the end of input. `open_host` is called by the first `hello`."""
        host: Host | None = None
        try:
            for request in self._requests():
                op = request.get("op")
                if op == "exit":
                    if host is not None:
                        quitting, host = host, None
                        quitting.close()
                    self._write({"id": request.get("id"), "ok": True, "ms": 0.0, "result": {}})
                    return
                began = time.perf_counter()
                try:
                    if op == "hello":
                        events = request.get("events")
                        self._tells = frozenset(map(str, events if isinstance(events, list) else ()))
                        result: Mapping[str, Any]
                        try:
                            host = open_host(self) if host is None else host
                            tells = ["handover"] if "handover" in self._tells else []
                            result = {"protocol": PROTOCOL, "tells": tells, **host.about()}
                        except NotLoadedError as refused:
                            result = {"protocol": PROTOCOL, "loaded": False, "words": f"{refused}"[:LONGEST_MESSAGE]}
                    else:
                        result = _result(host, request)
                except Exception as error:  # noqa: BLE001 - every request is answered, whatever the connector did
                    message = f"{error}"[:LONGEST_MESSAGE]
                    refusal = {"type": type(error).__name__, "message": message}
                    if (place := own_place(error)) is not None:
                        traceback.print_exc(file=sys.__stderr__)
                        refusal["at"] = place
                    self._write({"id": request.get("id"), "ok": False, "error": refusal})
                else:
                    took = round((time.perf_counter() - began) * 1000, 3)
                    printed = self._printed.take()
                    result = {**result, **({"printed": printed} if printed else {})}
                    self._write({"id": request.get("id"), "ok": True, "ms": took, "result": result})
        finally:
            if host is not None:
                host.close()

    @classmethod
    def play(cls, open_host: Callable[[Mapping[str, Any], Peer], Host]) -> None:
        """Serve with a host whose options, a JSON object, are the only argument of this program.

        Their member `face` is the path of a JSON file; the host gets its content.
        """
        options = json.loads(sys.argv[1])
        if "face" in options:
            options["face"] = json.loads(Path(options["face"]).read_bytes())
        cls().serve(lambda peer: open_host(options, peer))

    def model_turn(self, session: object, given: Sequence[Mapping[str, str]] = (), *, refused: bool = False) -> None:
        """Report that the model's turn of a session begins, and wait until the kit lets it go on.

        `given` are the texts that the connector gave for it, each with its `source`, by the name that the face has.
        `refused`: the harness refuses everything that was installed.
        """
        if "model" in self._tells:
            members = {**({"given": [*given]} if given else {}), **({"refused": True} if refused else {})}
            self._event({"event": "model", "session": session, **members})

    def hand_over(self, session: object, arguments: Mapping[str, Any]) -> None:
        """Report the arguments that a tool is about to get, and wait until the kit has written them down."""
        if "handover" in self._tells:
            self._event({"event": "handover", "session": session, "arguments": arguments})

    def print(self, text: str) -> None:
        """Add output of a process of the connector to the answer to the step."""
        self._printed.note(text)

    def tell_about(self, about: Mapping[str, Any]) -> None:
        """Report facts about the connector that are known only during a step, in the form of the host's `about`."""
        self._event({"event": "hello", "about": about})

    def _event(self, event: Mapping[str, Any]) -> None:
        self._write(event)
        for request in self._requests():
            if request.get("op") == "go":
                return

    def _requests(self) -> Iterator[dict[str, Any]]:
        while line := sys.stdin.buffer.readline():
            if not line.strip():
                continue
            request = parse_value(line)
            if isinstance(request, dict):
                yield request
            else:
                self._write({"id": None, "ok": False, "error": {"type": "StepError", "message": "no JSON object"}})

    def _write(self, answer: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(answer).encode("ascii") + b"\n")


_KIT = Path(__file__).resolve().parents[2]
_LIBRARY = sysconfig.get_path("stdlib")


def own_place(error: Exception) -> str | None:
    """Where in the kit's code an error arose; None for a StepError, and if code of the connector was involved."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_LIBRARY)]
    if isinstance(error, StepError) or not all(Path(frame.filename).is_relative_to(_KIT) for frame in frames):
        return None
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None


def _result(host: Host | None, request: Mapping[str, Any]) -> Mapping[str, Any]:
    if host is None:
        raise StepError("say hello first")
    if request.get("op") == "flush":
        host.flush()
        return {}
    step = request.get("step")
    if request.get("op") != "step" or not isinstance(step, dict):
        raise StepError(f"the op {request.get('op')!r} is unknown or lacks its step: use hello, step, flush, go, exit")
    try:
        return host.perform(step)
    except Skipped as reason:
        return {"skipped": str(reason)}


PROJECTS_VARIABLE = "SIGNET_CONFORMANCE_PROJECTS"


class Projects:
    """Real folders for the projects of scenarios, below a folder that the driver made and removes."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root or Path(os.environ.get(PROJECTS_VARIABLE) or Path.home())

    def folder(self, project: object) -> Path:
        """Return the folder of a project; make it if it is missing."""
        folder = self._root / Path(str(project or "project")).name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def with_programs(programs: Mapping[str, Sequence[str]], folder: Path) -> str:
    """A PATH on which the named programs are those of the connector, as its package would install them."""
    scripts = {name: f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n' for name, command in programs.items()}
    return with_scripts(scripts, folder)


def with_scripts(scripts: Mapping[str, str], folder: Path) -> str:
    """A PATH on which these scripts, by name, come first."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, script in scripts.items():
        program = folder / name
        program.write_text(script)
        program.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])


def write_files(home: Path, files: Mapping[str, Any]) -> None:
    """Write files by their paths below a home: a text as it is, any other value as JSON."""
    for path, content in files.items():
        file = home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), "utf-8")


_TICK_S = 0.05


class Lateness:
    """Measures how long a busy machine delays a hook, a request or a call of the connector.

    A timer in a thread of its own measures how late the machine wakes it. A busy machine may wake sleeping threads in
    time and still starve working ones. So where the system reports it, the time counts too for which the process `pid`
    and its descendants queued for the processor.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._pid = pid
        self._over = threading.Event()
        self._most_s = 0.0
        self._before = self._queued_s()
        self._queued = self._before
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def _tick(self) -> None:
        while not self._over.is_set():
            began = time.perf_counter()
            self._over.wait(_TICK_S)
            self._most_s = max(self._most_s, time.perf_counter() - began - _TICK_S)
            self._queued = {**self._queued, **self._queued_s()}

    def _queued_s(self) -> Mapping[int, float]:
        return {} if self._pid is None else dict(_queued_s(self._pid))

    def end(self) -> float:
        """Stop the timer; return the most milliseconds that it was late, or that a process of the connector queued."""
        self._over.set()
        self._thread.join()
        queued_s = (seconds - self._before.get(pid, 0.0) for pid, seconds in self._queued.items())
        return round(max(self._most_s, *queued_s, 0.0) * 1000, 1)


def _queued_s(pid: int) -> Iterator[tuple[int, float]]:
    """The seconds for which the main threads of a process and its descendants have queued for the processor."""
    with contextlib.suppress(OSError, ValueError):
        ran, queued, *_ = Path(f"/proc/{pid}/schedstat").read_text().split()
        if ran != "0":
            yield pid, int(queued) / 1e9
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _queued_s(int(child))
