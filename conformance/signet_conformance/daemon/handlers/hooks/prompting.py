"""A prompt of a session: what is known about the entities that it names."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from signet_conformance.daemon.handlers.hooks.claims import (
    claim,
    is_bypassed,
    is_internal,
    runtime_path,
)
from signet_conformance.daemon.handlers.hooks.prompt_context import context_for
from signet_conformance.daemon.state.agents import plain_agent, resolve_agent
from signet_conformance.daemon.state.terms import subject_words, without_envelope
from signet_conformance.daemon.state.transcripts import plain_lines, read_file
from signet_conformance.daemon.timestamps import spoken
from signet_conformance.daemon.values import fields_of, text_or_none, trimmed, truthy
from signet_conformance.daemon.wire import Answer, Call, present, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signet_conformance.daemon.state.daemon import Daemon

CONTEXT_VERSION: Final = 1


def prompt_submit(daemon: Daemon, call: Call) -> Answer:
    """POST hooks/user-prompt-submit: what is known about the entities that the prompt names."""
    if is_internal(call):
        return Answer({"inject": "", "memoryCount": 0})
    fields = fields_of(call.json())
    texts = [text for name in ("userMessage", "userPrompt") if (text := text_or_none(fields.get(name)))]
    if not truthy(fields.get("harness")) or not texts:
        return refusal(400, "harness and userMessage or userPrompt are required")
    path = runtime_path(call, fields)
    session, agent = text_or_none(fields.get("sessionKey")), plain_agent(fields)
    known = bool(session and daemon.sessions.owner(session, agent))
    said = {"sessionKnown": known}
    duplicate = claim(daemon, session, path, agent, {"inject": "", "memoryCount": 0, **said})
    if duplicate:
        return duplicate
    if not session or not daemon.presence.touch(session):
        daemon.presence.meet(
            session=session,
            agent=agent,
            harness=fields["harness"],
            project=text_or_none(fields.get("project")),
            path=path,
        )
    if is_bypassed(daemon, fields):
        return Answer({"inject": "", "memoryCount": 0, "bypassed": True})
    prompt = next((text for sent in texts if (text := without_envelope(sent))), "")
    return Answer({**_prompt(daemon, fields, prompt), **said})


def _prompt(daemon: Daemon, fields: Mapping[str, Any], prompt: str) -> dict[str, Any]:
    trimmed(fields["harness"])
    key = fields.get("sessionKey")
    agent = resolve_agent(fields.get("agentId"), key)
    if truthy(key):
        _keep_turn(daemon, fields, prompt, agent)
    context = context_for(daemon.store, prompt, agent)
    today = f"# Current Date & Time\n{spoken(daemon.clock())}"
    inject = "\n".join([today, "", "## Relevant Entity Context", "", *context.lines, ""]) if context.lines else ""
    if not context.lines and not daemon.behaviour.prompt_says_engine:
        inject = f"{today}\n\n## Memory Check\n\nNothing that is known matches this turn for certain.\n"
    answer = present(
        inject=inject,
        memoryCount=len(context.lines),
        queryTerms=" ".join(subject_words(prompt)) or None,
        engine=context.engine if context.lines or daemon.behaviour.prompt_says_engine else None,
        warnings=daemon.sessions.warnings(key, agent) if truthy(key) else None,
    )
    if daemon.behaviour.prompt_has_envelope:
        answer |= {"dynamicContext": inject, "clockContext": today}
        if inject:
            answer |= {"contextHash": hashlib.sha256(inject.encode()).hexdigest(), "contextVersion": CONTEXT_VERSION}
    return answer


def _keep_turn(daemon: Daemon, fields: Mapping[str, Any], prompt: str, agent: str) -> None:
    """Store the transcript that came with a prompt, or add the turn to the one stored."""
    key = str(fields["sessionKey"])
    stored = daemon.transcripts.get(key, agent)
    sent = sent_transcript(fields)
    if sent:
        text = sent if len(sent) >= len(stored) else stored
    else:
        last = text_or_none(fields.get("lastAssistantMessage"))
        turn = "\n".join([*([f"Assistant: {last}"] if last else []), f"User: {prompt}"])
        text = f"{stored}\n{turn}" if stored else turn
    daemon.transcripts.put(key, agent, text, harness=fields["harness"], project=fields.get("project"), now=daemon.now())


def sent_transcript(fields: Mapping[str, Any]) -> str:
    """The transcript of a request: that of a readable file, else the inline one.

    Raises `ScriptError` for a wrong type.
    """
    raw = read_file(fields.get("transcriptPath"))
    if raw is not None:
        return plain_lines(fields.get("harness"), raw)
    return plain_lines(fields.get("harness"), fields["transcript"]) if truthy(fields.get("transcript")) else ""
