"""The reference harness with the change of a mutant, or with the changes of variants.

    python -m signet_conformance.selftest.harness --mutant ID
    python -m signet_conformance.selftest.harness --variant ID --variant ID

It speaks the driver protocol like the harness. `Chain` changes the requests to the daemon, `ChangedModels` those to the
model.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import json
import os
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from signet_conformance.drivers.model_process import CONTROL_VARIABLE, MODEL_VARIABLE
from signet_conformance.errors import SignetConformanceError
from signet_conformance.selftest.mutants import Change, mutant, variant
from signet_conformance.selftest.transport import Chain
from signet_reference_harness import driver
from signet_reference_harness.config import HarnessConfig, certificates_for
from signet_reference_harness.daemon_client.wire import transport_to
from signet_reference_harness.errors import ProviderError
from signet_reference_harness.messages import Message
from signet_reference_harness.providers import CompletionChunk, CompletionOptions, CompletionResult, Provider
from signet_reference_harness.providers.scripted import Before, ScriptedProvider
from signet_reference_harness.providers.settings import load, make_provider
from signet_reference_harness.session.host import Models

API = "ollama-chat"
"""The model API that is used unless a mutant names another."""
_BASES = {"anthropic-messages": "", "openai-completions": "/v1", "openai-responses": "/v1", "ollama-chat": ""}
_BLOCK = re.compile(r"<system-reminder [^>]*>\n.*?\n</system-reminder>", re.DOTALL)
_PARTS = ("identity", "session-start", "user-prompt-submit", "summary")
"""The blocks of the reference's system prompt, named as in its `metadata`."""


class ServedModels:
    """Makes scripted models that all ask `provider`; the script goes to the server's address `control`."""

    def __init__(self, control: str, provider: Provider) -> None:
        self._control = control
        self._provider = provider
        self._http: httpx.AsyncClient | None = None

    def __call__(self, script: Sequence[CompletionResult], before: Before | None = None) -> Provider:
        """Return a model that gives these answers; `before` is awaited once, before the first."""
        return _ServedModel(self, script, before)

    async def ask(
        self, messages: Sequence[Message], options: CompletionOptions, answer: CompletionResult
    ) -> AsyncIterator[CompletionChunk]:
        """Ask the model, which gives `answer`. Raises ProviderError if it cannot be asked."""
        await self.script(answer)
        async for chunk in self._provider.stream(messages, options):
            yield chunk

    async def script(self, answer: CompletionResult) -> None:
        """Make the server give `answer` to the waiting request, or to the next one."""
        if self._http is None:
            verify = certificates_for(self._control)
            self._http = httpx.AsyncClient(base_url=self._control, trust_env=False, verify=verify, timeout=30.0)
        try:
            response = await self._http.post("/turns", content=json.dumps({"turns": [_turn(answer)]}))
            response.raise_for_status()
        except httpx.HTTPError as error:
            raise ProviderError(f"the scripted model cannot be given its answer: {error}") from error

    async def aclose(self) -> None:
        """End the connections."""
        await self._provider.aclose()
        if self._http is not None:
            await self._http.aclose()


class _ServedModel(ScriptedProvider):
    id = "served"

    def __init__(self, models: ServedModels, script: Sequence[CompletionResult], before: Before | None) -> None:
        super().__init__(script, before)
        self._models = models

    async def stream(self, messages: Sequence[Message], options: CompletionOptions) -> AsyncIterator[CompletionChunk]:
        answer = await super().complete(messages, options)
        async for chunk in self._models.ask(messages, options, answer):
            yield chunk

    async def complete(self, messages: Sequence[Message], options: CompletionOptions) -> CompletionResult:
        result = CompletionResult(content="")
        async for chunk in self.stream(messages, options):
            result = chunk.result or result
        return result


def _turn(answer: CompletionResult) -> Mapping[str, Any]:
    parts: list[Mapping[str, Any]] = [{"type": "text", "text": answer.content}] if answer.content else []
    parts += [
        {"type": "tool_call", "name": call.name, "arguments": dict(call.arguments), "id": call.id}
        for call in answer.tool_calls
    ]
    return {"content": parts}


class ChangedModels(ServedModels):
    """Models whose requests are those of the reference, with changes."""

    def __init__(self, changes: Sequence[tuple[str, Change]]) -> None:
        api = next((str(change["api"]) for _, change in changes if change["how"] == "api"), API)
        settings = load(
            {"api": api, "base_url": os.environ[MODEL_VARIABLE] + _BASES[api], "model": "scripted", "api_key": "none"},
            {},
            None,
        )
        super().__init__(os.environ[CONTROL_VARIABLE], make_provider(settings))
        self._changes = changes
        self._turns = 0
        self._injected: dict[str, list[str]] = {}
        self.applied: set[str] = {name for name, change in changes if change["how"] == "api"}
        """The names of the changes that changed a request."""

    async def ask(
        self, messages: Sequence[Message], options: CompletionOptions, answer: CompletionResult
    ) -> AsyncIterator[CompletionChunk]:
        """Send the changed request, after the requests that a change adds."""
        request = _ChangedRequest(list(messages), options, self._injected)
        self._turns += messages[-1].role == "user"
        for name, change in self._changes:
            if change.get("turn", self._turns) != self._turns:
                continue
            if change["how"] == "silent":
                raise ProviderError("the mutant asks nothing")
            if change["how"] in _BESIDE and messages[-1].role == "user":
                await self._ask_beside(*_BESIDE[change["how"]](request))
                self.applied.add(name)
            elif change["how"] in _CHANGES and _CHANGES[change["how"]](request, change):
                self.applied.add(name)
        for part in ("session-start", "user-prompt-submit"):
            blocks = self._injected.setdefault(part, [])
            blocks += [block for block in request.known if block == request.blocks.get(part) and block not in blocks]
        async for chunk in super().ask(request.messages, request.options, answer):
            yield chunk

    async def _ask_beside(self, messages: Sequence[Message], options: CompletionOptions) -> None:
        async for _ in super().ask(messages, options, CompletionResult(content="A title")):
            pass


class _ChangedRequest:
    """One request with the changes so far; `known` has its injected blocks, `earlier` those of earlier turns."""

    def __init__(
        self, messages: list[Message], options: CompletionOptions, earlier: Mapping[str, Sequence[str]]
    ) -> None:
        self.messages = messages
        self.options = options
        self.earlier = earlier
        blocks = _BLOCK.findall(options.system_prompt)
        parts = [row["part"] for row in options.metadata.get("context", ()) if row["part"] in _PARTS]
        self.blocks: dict[str, str] = dict(zip(parts, blocks, strict=False))
        self.known = [block for part, block in self.blocks.items() if part in ("session-start", "user-prompt-submit")]

    def set_system(self, system: str) -> None:
        """Set the system prompt."""
        self.options = replace(self.options, system_prompt=system, stable_prompt=0)

    def change_words(self, change: Callable[[str], str]) -> bool:
        """Change the text of the user's last message."""
        place = max(n for n, message in enumerate(self.messages) if message.role == "user")
        message = self.messages[place]
        self.messages[place] = replace(message, content=change(message.content))
        return True

    def append(self, text: str) -> bool:
        """Add a text to the end of the user's last message."""
        return self.change_words(lambda content: f"{content}\n\n{text}")


def _drop(request: _ChangedRequest, change: Change) -> bool:
    """Leave a part of the context out."""
    block = request.blocks.get(change["of"])
    if block is not None:
        request.set_system(request.options.system_prompt.replace(block, ""))
    return block is not None


def _late(request: _ChangedRequest, change: Change) -> bool:
    """Leave a part out until the model has called a tool."""
    return request.messages[-1].role == "user" and _drop(request, change)


def _once(request: _ChangedRequest, change: Change) -> bool:
    """Leave a part out once the model has called a tool."""
    return request.messages[-1].role == "tool" and _drop(request, change)


def _words(request: _ChangedRequest, _change: Change) -> bool:
    """Leave out the last word of the user's message."""
    return request.change_words(lambda text: text.rpartition(" ")[0])


def _echo(request: _ChangedRequest, _change: Change) -> bool:
    """Repeat the text of the user's last message in it."""
    return request.change_words(lambda text: f"{text}\n\n{text}")


def _unheard(request: _ChangedRequest, change: Change) -> bool:
    """Add a text to the system prompt if session-start injected nothing."""
    is_missing = "session-start" not in request.blocks
    if is_missing:
        request.set_system(f"{request.options.system_prompt}\n\n{change['told']}")
    return is_missing


def _double(request: _ChangedRequest, change: Change) -> bool:
    """Repeat a part of the context in the user's message."""
    block = request.blocks.get(change["of"])
    return block is not None and request.append(block)


def _stale(request: _ChangedRequest, change: Change) -> bool:
    """Replace a part by that of an earlier turn."""
    block = request.blocks.get(change["of"])
    earlier = [each for each in request.earlier.get(change["of"], ()) if each != block]
    if block is not None and earlier:
        request.set_system(request.options.system_prompt.replace(block, earlier[-1]))
    return block is not None and bool(earlier)


def _identity(request: _ChangedRequest, _change: Change) -> bool:
    """Drop the block of session-start, but write its identity and instructions into the system prompt."""
    block = request.blocks.get("session-start")
    if block is not None:
        own = block.partition("## Relevant Memories")[0]
        request.set_system(f"You code.\n{own}\n{request.options.system_prompt.replace(block, '')}")
    return block is not None


def _leak(request: _ChangedRequest, _change: Change) -> bool:
    """Add blocks that were injected into other sessions to the system prompt."""
    others = [block for blocks in request.earlier.values() for block in blocks if block not in request.known]
    if others:
        request.set_system("\n\n".join([request.options.system_prompt, *others]))
    return bool(others)


def _lie(request: _ChangedRequest, change: Change) -> bool:
    """Replace the result of the tool that ran last."""
    last = request.messages[-1]
    if last.role != "tool":
        return False
    request.messages[-1] = replace(last, content=str(change["told"]))
    return True


def _into_message(request: _ChangedRequest, _change: Change) -> bool:
    """Move all of the context from the system prompt to the user's message."""
    system = request.options.system_prompt
    request.set_system("You are a careful agent.")
    return bool(system) and request.append(system)


def _rewriting(rewrite: Callable[[str], str]) -> Callable[[_ChangedRequest, Change], bool]:
    """Rewrite each block of the system prompt."""

    def change(request: _ChangedRequest, _change: Change) -> bool:
        before = request.options.system_prompt
        request.set_system(_BLOCK.sub(lambda match: rewrite(match[0]), before))
        return request.options.system_prompt != before

    return change


def _quote(block: str) -> str:
    lines = (textwrap.wrap(line, 40) or [""] for line in block.splitlines())
    return "\n".join(f"> {piece}" for wrapped in lines for piece in wrapped)


def _shorten(block: str) -> str:
    lines = [line for line in block.splitlines() if line.strip()]
    return "\n".join([*lines[: max(len(lines) * 2 // 3, 2)], "[… truncated, the rest was left out]"])


_CHANGES: Mapping[str, Callable[[_ChangedRequest, Change], bool]] = {
    "drop": _drop,
    "late": _late,
    "once": _once,
    "words": _words,
    "echo": _echo,
    "unheard": _unheard,
    "double": _double,
    "leak": _leak,
    "stale": _stale,
    "identity": _identity,
    "lie": _lie,
    "message": _into_message,
    "merged": _rewriting(lambda block: re.sub(r"</?system-reminder[^>]*>", "", block)),
    "quoted": _rewriting(_quote),
    "escaped": _rewriting(lambda block: json.dumps({"additionalContext": html.escape(block)})),
    "reversed": _rewriting(lambda block: "\n".join(reversed(block.splitlines()))),
    "shortened": _rewriting(_shorten),
}
_Request = tuple[Sequence[Message], CompletionOptions]
_BESIDE: Mapping[str, Callable[[_ChangedRequest], _Request]] = {
    "title": lambda request: (
        [Message("user", f"Write a short title for a conversation that begins so: {request.messages[-1].content}")],
        CompletionOptions(system_prompt="You name conversations."),
    ),
    "warm_up": lambda request: ([Message("user", "Warmup")], CompletionOptions(tools=request.options.tools)),
    "retry": lambda request: (request.messages, request.options),
}
"""Requests that a change adds before a turn's first one."""


PLANTED_VARIABLE = "SIGNET_SELFTEST_PLANTED"
"""Holds the value of a secret, for the mutant that leaks one."""

DEFAULT_PORT_VARIABLE = "SIGNET_SELFTEST_DEFAULT_PORT"
"""Holds the port in place of the daemon's default one, for the mutant that calls it."""

APPLIED_VARIABLE = "SIGNET_SELFTEST_APPLIED"
"""Names the file for the ids of the variants that changed a request, written at the end."""


_LINGER = "import sys, time; sys.stdin.read(); time.sleep(float(sys.argv[1]))"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve standard input until it ends, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m signet_conformance.selftest.harness")
    changed = parser.add_mutually_exclusive_group()
    changed.add_argument("--mutant", metavar="ID", help="a mutant of schemas/mutants.json (default: none)")
    changed.add_argument("--variant", metavar="ID", action="append", default=[], help="a variant; repeatable")
    parser.add_argument("--start-at-prompt", action="store_true", help="as for the harness itself")
    options = parser.parse_args(arguments)
    try:
        changes = [(name, change) for name in options.variant for change in variant(name).changes]
        if options.mutant is not None and (change := mutant(options.mutant).of_connector):
            changes.append((options.mutant, change))
    except SignetConformanceError as problem:
        print(f"{problem}", file=sys.stderr)
        return problem.exit_status
    of_models: list[tuple[str, Change]] = []
    of_daemon: list[tuple[str, Change]] = []
    with contextlib.ExitStack() as stack:
        for name, change in changes:
            match change["do"]:
                case "environment":
                    for variable in change["unset"]:
                        os.environ.pop(variable, None)
                case "process":
                    _start_process(change)
                case "host":
                    stack.enter_context(with_host_changes(change))
                case "model":
                    of_models.append((name, change))
                case _:
                    of_daemon.append((name, change))
        daemon = transport_to(HarnessConfig.from_environment(os.environ).origin)
        port = int(os.environ.get(DEFAULT_PORT_VARIABLE, "0"))
        chain = Chain(of_daemon, daemon, os.environ.get(PLANTED_VARIABLE), port)
        models = _models(of_models)
        status = driver.main(chain.transport, models, starts_at_prompt=options.start_at_prompt)
    if (out := os.environ.get(APPLIED_VARIABLE)) is not None:
        applied = {name for name, change in changes if change["do"] != "model"} - chain.idle
        applied |= models.applied if isinstance(models, ChangedModels) else set()
        Path(out).write_text(json.dumps(sorted(applied)), "utf-8")
    return status


_started: list[subprocess.Popen[bytes]] = []
"""Kept, so that their standard input stays open until this process ends."""


def _start_process(change: Change) -> None:
    """Start the process of a `process` change. Its standard input ends when this process ends."""
    command = [sys.executable, "-c", _LINGER, str(change["seconds"]), *change.get("words", ())]
    started = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    _started.append(started)


def _models(changes: Sequence[tuple[str, Change]]) -> Models:
    """Return the models: those of a server if the kit started one, else scripts in this process."""
    return ChangedModels(changes) if MODEL_VARIABLE in os.environ else ScriptedProvider


@contextlib.contextmanager
def with_host_changes(change: Change) -> Iterator[None]:
    """Relay standard input and output, and add the members of a `host` change to the driver's answers.

    Steps that the change names as `unheard` never reach the connector. The driver reads descriptor 0 and writes
    descriptor 1, which are pipes to threads of this process.
    """
    step_of: dict[Any, str] = {}
    kit_in, kit_out = os.dup(0), os.dup(1)
    requests, to_driver = os.pipe()
    answers, to_kit = os.pipe()
    for pipe, descriptor in ((requests, 0), (to_kit, 1)):
        os.dup2(pipe, descriptor)
        os.close(pipe)
    reader = threading.Thread(
        target=_relay_requests, args=(kit_in, to_driver, step_of, change), name="requests", daemon=True
    )
    writer = threading.Thread(target=_relay_answers, args=(answers, kit_out, step_of, change), name="answers")
    reader.start()
    writer.start()
    try:
        yield
    finally:
        # This closes the last writer of the pipe, so the thread ends.
        os.dup2(kit_out, 1)
        writer.join()


def _relay_requests(kit_in: int, to_driver: int, step_of: dict[Any, str], change: Change) -> None:
    with open(kit_in, "rb") as lines, open(to_driver, "wb", buffering=0) as driver:
        for line in lines:
            request = json.loads(line)
            step = request.get("step")
            step_of[request.get("id")] = name = step["step"] if isinstance(step, dict) else str(request.get("op"))
            is_dropped = isinstance(step, dict) and name in change.get("unheard", ())
            # In its place a flush, whose answer is that of a step in which nothing happens.
            driver.write(json.dumps({"id": request["id"], "op": "flush"}).encode() + b"\n" if is_dropped else line)


def _relay_answers(answers: int, kit_out: int, step_of: dict[Any, str], change: Change) -> None:
    with open(answers, "rb") as lines, open(kit_out, "wb", buffering=0) as kit:
        for line in lines:
            message = json.loads(line)
            result, step = message.get("result"), step_of.get(message.get("id"))
            if isinstance(result, dict) and step is not None:
                added = {"hello": change.get("hello", {}), change.get("at", ""): change.get("result", {})}
                result.update({name: _fill_token(value) for name, value in added.get(step, {}).items()})
            kit.write(json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n")


def _fill_token(value: Any) -> Any:
    """Replace the placeholder of the connector's token in a text; return any other value as it is."""
    return value.replace("{{token}}", os.environ.get("SIGNET_TOKEN", "")) if isinstance(value, str) else value


if __name__ == "__main__":
    sys.exit(main())
