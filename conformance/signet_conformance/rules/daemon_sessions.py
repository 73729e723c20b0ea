"""Requirements on what the daemon keeps between calls: claims, answered starts, tombstones, jobs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from signet_conformance import facts
from signet_conformance.facts import Call, Recording
from signet_conformance.rules.daemon_answers import (
    is_own_answer,
    is_served,
    lost_state,
    was_interrupted,
    whole_answers,
)
from signet_conformance.rules.outcome import PASS, Outcome, pass_if, undecided
from signet_conformance.rules.start import CLAIM_ONLY_SINCE, dedupe_key

CLAIM_S = 4 * 3600.0
TOMBSTONE_S = 30 * 60.0


class _Claims:
    """The claims on sessions that certainly hold at a call, with the calls that made them.

    Whatever may have ended a claim drops it: an end, a restart, a lost exchange, a bypass.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._claims: dict[str, dict[str, tuple[Call, Call]]] = {}
        self._claiming = (facts.START, facts.PROMPT) if recording.at_least("0.109") else (facts.START,)

    def claim_at(self, call: Call) -> Call | None:
        """The call that claimed the session of `call`, if that claim certainly still holds."""
        claim = self._claims.get(str(call.key), {}).get(call.agent)
        if claim is None:
            return None
        first, last = claim
        if call.t0 - last.t1 > CLAIM_S or was_interrupted(self._recording, first, call):
            return None
        return first

    def record(self, call: Call) -> None:
        """Take a call into account, after it was judged."""
        if call.key is None or call.operation not in facts.LIFECYCLE:
            return
        if call.operation == facts.END or not is_own_answer(call) or call.answer_value("bypassed"):
            # An end whose answer was lost may have arrived, as may anything else.
            self._claims.pop(call.key, None)
        elif call.operation in self._claiming and call.accepted and not call.answer_value("skipped"):
            claims = self._claims.setdefault(call.key, {})
            first, _ = claims.get(call.agent, (call, call))
            if call.runtime_path is not None and first.runtime_path == call.runtime_path:
                claims[call.agent] = (first, call)


def conflict_is_told(recording: Recording) -> Iterator[Outcome]:
    """A hook on another runtime path than the one that claimed the session is answered as a conflict."""
    claims = _Claims(recording)
    skips = recording.at_least("0.109")
    for call in recording.of(*facts.LIFECYCLE, *facts.CLAIM_CHECKING):
        # Before 0.109, an end is accepted whoever holds the session.
        due = is_served(call) and None not in (call.key, call.runtime_path) and (skips or call.operation != facts.END)
        owner = claims.claim_at(call) if due else None
        if owner is not None and owner.runtime_path != call.runtime_path:
            is_error = call.operation == facts.START or call.operation in facts.CLAIM_CHECKING or not skips
            is_skipped = all(call.answer_value(name) is True for name in ("skipped", "duplicateRuntimePath"))
            names_owner = call.answer_value("claimedBy") == owner.runtime_path
            conforms = call.status == 409 if is_error else call.status == 200 and is_skipped and names_owner
            wanted = "409" if is_error else f"200 skipped, claimedBy {owner.runtime_path}"
            yield pass_if(conforms) or lost_state(
                recording, "SIG-DAEMON-003", "accepted", call, owner, received=call.status, owner=owner, wanted=wanted
            )
        claims.record(call)


def repeated_start_gets_the_stub(recording: Recording) -> Iterator[Outcome]:
    """A repeated start of an open session is answered with the stub."""
    for hooks in recording.hooks_of.values():
        full: Call | None = None
        for call in hooks:
            if not call.accepted or not is_served(call) or call.operation in (facts.END, facts.COMPLETE):
                full = None
                continue
            if call.answer_value("sessionKnown") is False:
                full = None
            if call.operation != facts.START:
                continue
            claims_only = call.body.get("claimOnly") is True and recording.at_least(CLAIM_ONLY_SINCE)
            if call.answer_value("skipped") or claims_only:
                continue
            if (
                full is None
                or dedupe_key(full) != dedupe_key(call)
                or call.body.get("source") == "clear"
                or was_interrupted(recording, full, call)
            ):
                full = None if call.is_stub else call
            else:
                inject = str(call.answer_value("inject"))[:80]
                yield pass_if(call.is_stub) or lost_state(
                    recording, "SIG-DAEMON-004", "whole context", call, full, received=inject
                )


def second_end_is_dropped(recording: Recording) -> Iterator[Outcome]:
    """A second end within thirty minutes is dropped, and the answer says so."""
    for hooks in recording.hooks_of.values():
        for before, call in pairwise(hooks):
            if not (before.operation == call.operation == facts.END and is_served(before) and is_served(call)):
                continue
            if before.runtime_path is None or (before.runtime_path, before.agent) != (call.runtime_path, call.agent):
                continue
            if before.answer_value("skipped") or call.t0 - before.t1 > TOMBSTONE_S:
                continue
            if was_interrupted(recording, before, call):
                continue
            is_dropped = all(call.answer_value(name) is True for name in ("skipped", "duplicateSessionEnd"))
            yield pass_if(is_dropped) or lost_state(
                recording, "SIG-DAEMON-005", "second end", call, before, received=dict(call.answer or {})
            )


def job_can_be_looked_at(recording: Recording) -> Iterator[Outcome]:
    """A job that was accepted can be looked up."""
    if not recording.of(facts.EXEC, cut=True):
        return
    recording = recording.whole
    jobs: dict[str, Call] = {}
    for call in whole_answers(recording):
        if call.operation == facts.EXEC and call.status == 202:
            jobs[str(call.answer_value("id"))] = call
        elif call.operation == facts.EXEC_JOB:
            identifier = call.path.rsplit("/", 1)[-1]
            job = jobs.get(identifier)
            if job is None or call.status in (401, 403, 429):
                continue
            if call.status == 200 and call.answer_value("id") == identifier:
                yield PASS
            elif was_interrupted(recording, job, call):
                yield undecided(call, message="the daemon may have been restarted since it accepted the job")
            else:
                yield lost_state(
                    recording, "SIG-DAEMON-010", "lost job", call, job, received=call.status, id=identifier
                )


def started_session_is_known(recording: Recording) -> Iterator[Outcome]:
    """The answer to a prompt of a started session says sessionKnown: true."""
    claims = _Claims(recording)
    for call in recording.hooks:
        if call.operation == facts.PROMPT and call.accepted and is_served(call):
            owner = claims.claim_at(call) if call.key is not None else None
            if owner is not None and owner.runtime_path == call.runtime_path and not call.answer_value("skipped"):
                is_known = call.answer_value("sessionKnown") is not False
                yield pass_if(is_known) or lost_state(recording, "SIG-DAEMON-011", "unknown session", call, owner)
        claims.record(call)
