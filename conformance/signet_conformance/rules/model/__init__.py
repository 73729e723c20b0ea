"""The rules of the harness's side: what reached its model, judged over a recording and that of its model together.

Without a recording of the model none of them has a subject. They change no verdict of the connector's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from signet_conformance.facts import Recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules.model import injected, tools, turns, unheard, words
from signet_conformance.rules.model.turns import turns as turns_in
from signet_conformance.rules.outcome import Outcome, Rule
from signet_conformance.trace.marks import InstalledMark

MODEL_RULES: Mapping[str, Rule] = {
    "SIG-MODEL-001": injected.start_is_before_the_model,
    "SIG-MODEL-002": injected.prompt_context_is_before_the_model,
    "SIG-MODEL-003": injected.injected_text_stands_once,
    "SIG-MODEL-004": injected.injected_text_stays_in_its_session,
    "SIG-MODEL-005": injected.memory_stays_with_its_agent_and_project,
    "SIG-MODEL-006": turns.prompt_hook_comes_first,
    "SIG-MODEL-007": tools.tool_outcome_is_told,
    "SIG-MODEL-008": turns.turn_is_answered_without_the_daemon,
    "SIG-MODEL-009": injected.model_works_with_the_told_summary,
    "SIG-MODEL-010": words.words_reach_the_model,
    "SIG-MODEL-011": injected.text_stands_through_its_turn,
    "SIG-MODEL-012": injected.untaken_text_stays_away,
    "SIG-MODEL-013": unheard.unheard_start_is_told_as_that,
}
"""Every rule of the harness's side by requirement id."""

NOT_RECORDED = (
    "nothing was recorded between the harness and its model, nor does the kit know what this host puts before it: "
    "let the kit drive the real program with --harness real"
)
REFUSED = "the host refuses what was installed, so nothing that the daemon answers reaches its model"
NO_TURNS = "no turn of the user is marked in both recordings, by which the model's requests are told apart"


def rule_of(name: str, recording: Recording) -> Rule | None:
    """The rule for a requirement; what it finds in requests that a played host wrote says so."""
    rule = MODEL_RULES.get(name)
    model = recording.model
    if rule is None or model is None or not model.header.played:
        return rule
    header = model.header
    return partial(_as_played, rule, f"{header.host or 'the host'} {header.host_release or ''}".strip())


def _as_played(rule: Rule, host: str, recording: Recording) -> Iterator[Outcome]:
    for outcome in rule(recording):
        if isinstance(outcome, Finding) and outcome.verdict in (Verdict.FAIL, Verdict.WARN):
            yield replace(outcome, message=f"{outcome.message}, as the kit plays {host}")
        else:
            yield outcome


def why_not_judged(recording: Recording) -> str | None:
    """Why no rule of the harness's side can say anything of a recording; None where they can."""
    if recording.model is None:
        return NOT_RECORDED
    if recording.model.header.played and not recording.model.exchanges:
        installed = recording.marks(InstalledMark)
        return NO_TURNS if all(mark.accepted for mark in installed) else REFUSED
    return None if turns_in(recording) else NO_TURNS
