"""A terminal and a model server around the chat program that joins llama.cpp to Signet.

    python -m signet_conformance.drivers.hosts.llama_chat RUNTIME MODULE

The program is started for each session, as a user starts it, and prompts are typed. Its model is a script, which calls
the tools of the steps and gives their replies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any, cast

from signet_conformance.drivers.hosts.model_server import ModelRequest, ModelServer
from signet_conformance.drivers.hosts.protocol import Peer, Skipped, StepError
from signet_conformance.drivers.hosts.tools import tool_calls

READY = b"You> "
WAIT_S = 100.0
QUIT_S = 40.0
"""The program waits up to 30 s for its last hook."""
_LOOK_S = 0.25


class ChatProgram:
    """The running chat program: types lines, and notices when it waits for the user."""

    def __init__(self, command: Sequence[str], server: str) -> None:
        env = {**os.environ, "LLAMA_CPP_SERVER_URL": server}
        self._process = subprocess.Popen(
            [*command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr, env=env
        )
        self._waits = threading.Semaphore(0)
        self._ended = threading.Event()
        # Both were given pipes.
        self._stdin, output = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        threading.Thread(target=self._read_output, args=(output,), daemon=True).start()

    def _read_output(self, output: IO[bytes]) -> None:
        rest = b""
        while chunk := os.read(output.fileno(), 65536):
            *before, rest = (rest + chunk).split(READY)
            rest = rest[-len(READY) :]
            for _ in before:
                self._waits.release()
        self._ended.set()
        self._waits.release()

    def await_user(self) -> None:
        """Wait until it waits for the user. Raises StepError if it ends instead, or does neither in time."""
        if not self._waits.acquire(timeout=WAIT_S):
            raise StepError(f"the chat program did not return to its prompt within {WAIT_S:g} s")
        self.demand_alive()

    def demand_alive(self) -> None:
        """Raise StepError when it has ended."""
        if self._ended.is_set():
            raise StepError(f"the chat program ended with status {self._process.wait()}; see its standard error")

    def type(self, line: str) -> None:
        """Type one line."""
        try:
            self._stdin.write(line.encode() + b"\n")
            self._stdin.flush()
        except BrokenPipeError:
            raise StepError("the chat program no longer reads input") from None

    def quit(self, timeout_s: float) -> None:
        """Quit as a user does, and wait for its end; kill it if it does not end in time."""
        try:
            if self._process.poll() is None:
                self.type("/quit")
            self._process.wait(timeout_s)
        except (StepError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()


class LlamaChat:
    """Performs the steps of one session at a time."""

    def __init__(self, command: Sequence[str], peer: Peer) -> None:
        self._command = command
        self._peer = peer
        self._model = ModelServer()
        self._program: ChatProgram | None = None
        self._asked: ModelRequest | None = None
        self._reply = ""

    def about(self) -> Mapping[str, Any]:
        """The harness that is played."""
        return {"harness": "llama-cpp", "tells": []}

    def perform(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform one step."""
        kind = str(step.get("step"))
        if kind in ("start", "resume"):
            self.close_program()
            self._program = ChatProgram(self._command, self._model.url)
            self._program.await_user()
            return {"opened": True}
        if self._program is None:
            raise StepError("no session is open: start it first")
        if kind == "prompt":
            return self._prompt(self._program, step)
        if kind == "tool":
            return self._tool(self._program, step)
        if kind == "clear":
            self._program.type("/clear")
            self._program.await_user()
            return {"opened": True}
        if kind == "end":
            self.close_program()
            return {"ended": True}
        raise Skipped(f"the chat program has no equivalent of {kind}")

    def _prompt(self, program: ChatProgram, step: Mapping[str, Any]) -> Mapping[str, Any]:
        text = str(step.get("text"))
        if text.splitlines() != [text]:
            raise Skipped("a user of the chat program types one line")
        program.type(text)
        self._asked = self._next(program)
        self._peer.model_turn(step.get("session"))
        self._reply = str(step.get("reply") or "Understood.")
        injected = self._asked.injected
        if not step.get("more"):
            self._end_turn(program)
        return {"turn": True, "injected": injected}

    def _tool(self, program: ChatProgram, step: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._asked is None:
            raise Skipped("the model calls tools only in a user's turn")
        answer: Mapping[str, Any] = {}
        try:
            for name, arguments in tool_calls(step, dict.fromkeys(self._asked.tools), {}):
                self._model.call(self._asked, name, arguments)
                self._asked = self._next(program)
                answer = self._asked.tool_result()
        finally:
            if not step.get("more"):
                self._end_turn(program)
        return answer

    def _next(self, program: ChatProgram) -> ModelRequest:
        """Return the program's next request to the model. Raises StepError when it ends, or asks nothing in time."""
        deadline = time.monotonic() + WAIT_S
        while (asked := self._model.await_request(_LOOK_S)) is None:
            program.demand_alive()
            if time.monotonic() > deadline:
                raise StepError(f"the chat program did not ask its model within {WAIT_S:g} s")
        return asked

    def _end_turn(self, program: ChatProgram) -> None:
        if self._asked is not None:
            self._model.say(self._asked, self._reply)
            self._asked = None
            program.await_user()

    def flush(self) -> None:
        """Do nothing: the program waits for its user, or has ended."""

    def close_program(self) -> None:
        """Quit the program, if one runs, after its model has given its last reply."""
        program, self._program = self._program, None
        if program is not None:
            if self._asked is not None:
                self._model.say(self._asked, self._reply)
                self._asked = None
            program.quit(QUIT_S)

    def close(self) -> None:
        """Quit the program and the model's server."""
        self.close_program()
        self._model.close()


def main(arguments: Sequence[str]) -> None:
    """Serve standard input."""
    Peer().serve(lambda peer: LlamaChat(arguments, peer))


if __name__ == "__main__":
    main(sys.argv[1:])
