"""The rules on the harness: what reached its model. They read the connector's recording and the model's together.

Without a recording of the model they judge nothing. They change no verdict on the connector.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from signet_conformance.facts import Recording
from signet_conformance.finding import Finding, Verdict
from signet_conformance.rules import harness_rules
from signet_conformance.rules.model.turns import turns as turns_in
from signet_conformance.rules.outcome import Outcome, Rule
from signet_conformance.trace.marks import InstalledMark

NOT_RECORDED = (
    "the traffic between the harness and its model was not recorded, and the kit does not know what this host sends "
    "to its model: drive the real program with --harness real"
)
REFUSED = "the host refuses the installed connector, so no answer of the daemon reaches its model"
NO_TURNS = "no user turn is marked in both recordings, so the model's requests cannot be assigned"


def rule_of(name: str, recording: Recording) -> Rule | None:
    """Find the rule of a requirement. Where the kit played the host, the rule's findings say so."""
    rule = harness_rules().get(name)
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
    """Say why no rule on the harness can judge a recording; None if they can."""
    if recording.model is None:
        return NOT_RECORDED
    if recording.model.header.played and not recording.model.exchanges:
        installed = recording.marks(InstalledMark)
        return NO_TURNS if all(mark.accepted for mark in installed) else REFUSED
    return None if turns_in(recording) else NO_TURNS
