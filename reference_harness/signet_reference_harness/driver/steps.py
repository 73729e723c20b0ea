"""The steps of a scenario, performed by the sessions of a host. Each step is a JSON object; see `driver`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, cast, get_args

from signet_reference_harness.daemon_client.adapter import StartSource
from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.errors import StepError
from signet_reference_harness.messages import ToolCall
from signet_reference_harness.providers import CompletionResult, StopReason
from signet_reference_harness.session import Session
from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.session.lifecycle import SHUTDOWN
from signet_reference_harness.tools import ToolResult

DEFAULT_REPLY: Final = "Understood."
RESTART: Final = "restart_host"
CONTROL: Final = re.compile(r"[^ -~]")

Step = Mapping[str, Any]
Result = dict[str, Any]


async def perform(host: SessionHost, step: Step) -> Result:
    """Perform one step and return its result, with every failure met on the way.

    Raises StepError for a step that cannot be performed and IdentityError for a session that may not be.
    """
    name = _string(step, "step")
    if name == SESSIONLESS:
        return await _sessionless(host, step)
    performer = PERFORMERS.get(name)
    if performer is None:
        raise StepError(f"there is no step {name!r}", remedy=f"use one of {', '.join(PERFORMERS)}")
    if name == "start" or (name == RESTART and not host.knows(_string(step, "session"))):
        session = await _session_to_start(host, step)
    else:
        session = host.session(_string(step, "session"))
        if name not in OPENING and not session.is_open:
            raise StepError(f"session {step['session']!r} is not open", remedy="start or resume it first")
    # A session that the daemon considers open would look abandoned when the next one starts.
    await host.send_unsent_ends()
    result = await performer(host, session, step)
    replies = session.take_replies()
    return {
        "session": step["session"],
        "key": session.identity.key,
        **result,
        "calls": [_call(reply) for reply in replies],
        "failures": [_failure(reply) for reply in replies if reply.failure is not None],
    }


async def _sessionless(host: SessionHost, step: Step) -> Result:
    """Perform a turn without a session: the model answers, and the daemon is not asked."""
    _string(step, "text")
    announce = _announcer(host, _string(step, "session"))
    if announce is not None:
        await announce()
    reply = _optional_string(step, "reply")
    outcome = {"turn": True, "reply": DEFAULT_REPLY if reply is None else reply, "injected": False}
    return {"session": step["session"], **outcome, "calls": [], "failures": []}


async def _session_to_start(host: SessionHost, step: Step) -> Session:
    # Check before creating the session: a refused start must leave no session with a fixed project.
    _source(step)
    return host.session_for(
        _string(step, "session"),
        project=_optional_string(step, "project"),
        agent=_optional_string(step, "agent"),
        key=_optional_string(step, "key"),
    )


async def _start(host: SessionHost, session: Session, step: Step) -> Result:
    parent = _optional_string(step, "parent")
    if parent is not None:
        session.parent, session.subagent = host.session(parent).identity.key, _optional_string(step, "subagent")
    replaced = _optional_string(step, "replaces")
    opened = await host.start(session, _source(step), host.session(replaced) if replaced else None)
    return {"agent": session.identity.agent, "opened": opened}


def _source(step: Step) -> StartSource:
    source = step.get("source", "startup")
    if source not in get_args(StartSource):
        raise StepError(f"source {source!r} is not one of {', '.join(get_args(StartSource))}")
    return cast(StartSource, source)


async def _prompt(host: SessionHost, session: Session, step: Step) -> Result:
    if step.get("stopped") is True:
        # The prompt is sent to the daemon, and the user stops the turn before the model is asked.
        await session.submit(_string(step, "text"), _ratings(step))
        return {"turn": False, "reply": "", "injected": False, "tools": []}
    reply = _optional_string(step, "reply")
    reply = DEFAULT_REPLY if reply is None else reply
    calls = _tool_calls(step)
    script = [_tool_use(*calls)] if calls else []
    provider = host.models([*script, CompletionResult(content=reply)], _announcer(host, _string(step, "session")))
    turn = await session.turn(_string(step, "text"), provider, _ratings(step))
    return {
        "turn": turn.error is None,
        "reply": turn.reply,
        "injected": turn.injected,
        "tools": [_tool_result(result) for result in turn.tool_results],
    }


def _ratings(step: Step) -> Mapping[str, float] | None:
    given = step.get("feedback")
    if given is None:
        return None
    if not isinstance(given, dict) or not all(
        type(value) in (int, float) and -1 <= value <= 1 for value in given.values()
    ):
        raise StepError("'feedback' must map ids of memories to numbers from -1 to 1")
    return given


def _announcer(host: SessionHost, name: str) -> Callable[[], Awaitable[None]] | None:
    announce = host.model_turn
    return None if announce is None else lambda: announce(name)


async def _tool(host: SessionHost, session: Session, step: Step) -> Result:
    call = ToolCall("call-1", _string(step, "tool"), _object(step, "arguments"))
    done = await session.go_on(host.models([_tool_use(call), CompletionResult(content="")], None))
    return _tool_result(done.tool_results[0])


def _tool_use(*calls: ToolCall) -> CompletionResult:
    return CompletionResult(content="", tool_calls=calls, stop_reason=StopReason.TOOL_USE)


async def _pre_compaction(_host: SessionHost, session: Session, _step: Step) -> Result:
    result = await session.pre_compaction()
    return {"summary_prompt": result.summary_prompt, "guidelines": result.guidelines}


async def _compaction_complete(_host: SessionHost, session: Session, step: Step) -> Result:
    reply = await session.compaction_complete(_optional_string(step, "summary") or "")
    return {"completed": reply.accepted}


async def _compact(host: SessionHost, session: Session, step: Step) -> Result:
    summary = _optional_string(step, "summary") or ""
    done = await session.compact(host.models([CompletionResult(content=summary)], None))
    return {
        "summary_prompt": done.instructions.summary_prompt,
        "guidelines": done.instructions.guidelines,
        "completed": done.reply.accepted,
    }


async def _clear(host: SessionHost, session: Session, step: Step) -> Result:
    if step.get("anew") is True:
        unreported = step.get("end_untold") is True
        session = await host.begin_anew(_string(step, "session"), end_untold=unreported)
    else:
        await host.clear(session)
    return {"opened": True, "key": session.identity.key}


async def _resume(host: SessionHost, session: Session, _step: Step) -> Result:
    return {"opened": await host.start(session, "resume")}


async def _restart_host(host: SessionHost, session: Session, step: Step) -> Result:
    if not session.openings:
        # Another process was killed, and this one knows no session yet.
        return {"opened": await host.start(session, "resume")}
    options = {name: step.get(name) is True for name in ("anew", "end_untold")}
    session = await host.continue_session(_string(step, "session"), **options)
    return {"opened": True, "key": session.identity.key}


async def _end(host: SessionHost, session: Session, step: Step) -> Result:
    reply = await host.end(session, _optional_string(step, "reason") or SHUTDOWN)
    return {"ended": reply.accepted}


async def _checkpoint(_host: SessionHost, session: Session, _step: Step) -> Result:
    return {"checkpointed": (await session.checkpoint()).accepted}


PERFORMERS: Final[Mapping[str, Callable[[SessionHost, Session, Step], Awaitable[Result]]]] = {
    "start": _start,
    "prompt": _prompt,
    "tool": _tool,
    "compact": _compact,
    "pre_compaction": _pre_compaction,
    "compaction_complete": _compaction_complete,
    "clear": _clear,
    "resume": _resume,
    RESTART: _restart_host,
    "end": _end,
    "close": _end,
    "checkpoint": _checkpoint,
}
SESSIONLESS: Final = "sessionless_prompt"
STOPPED: Final = "stopped_prompt"
"""The name in the answer to hello of a prompt that is stopped."""
ATTACHED: Final = "attached_prompt"
"""The name in the answer to hello of a prompt with an attachment; an image alone is not sent to the daemon."""
OPENING: Final = frozenset({"start", "resume"})
"""Steps that a session need not be open for."""


def _call(reply: Reply) -> Result:
    return {"operation": reply.operation, "status": reply.status, "sent": reply.sent}


def _failure(reply: Reply) -> Result:
    # The error text comes from the daemon or the network, and may be shown in a terminal.
    return {
        "operation": reply.operation,
        "class": str(reply.failure),
        "status": reply.status,
        "detail": CONTROL.sub("?", reply.detail),
    }


def _tool_result(result: ToolResult) -> Result:
    return {"tool": result.name, "done": result.ok, "content": dict(result.content), "error": result.error}


def _tool_calls(step: Step) -> tuple[ToolCall, ...]:
    calls = step.get("tools", [])
    if not isinstance(calls, Sequence) or isinstance(calls, str) or not all(isinstance(call, dict) for call in calls):
        raise StepError("'tools' is not a list of objects", remedy='give [{"tool": "memory_search", "arguments": {}}]')
    return tuple(
        ToolCall(f"call-{number}", _string(call, "tool"), _object(call, "arguments"))
        for number, call in enumerate(calls, start=1)
    )


def _string(step: Step, name: str) -> str:
    value = step.get(name)
    if not isinstance(value, str):
        raise StepError(f"{name!r} is {type(value).__name__}, not a string", remedy=f"give the step a {name!r}")
    return value


def _optional_string(step: Step, name: str) -> str | None:
    return None if step.get(name) is None else _string(step, name)


def _object(step: Step, name: str) -> Mapping[str, Any]:
    value = step.get(name, {})
    if not isinstance(value, dict):
        raise StepError(f"{name!r} is {type(value).__name__}, not an object", remedy=f"give {name!r} as an object")
    return value
