"""The rules of the daemon's side: whether its answers keep the contract. Its breach is never the connector's."""

from __future__ import annotations

from collections.abc import Mapping

from signet_conformance.rules import daemon_answers, daemon_sessions
from signet_conformance.rules.outcome import Rule

DAEMON_RULES: Mapping[str, Rule] = {
    "SIG-DAEMON-001": daemon_answers.success_has_its_shape,
    "SIG-DAEMON-002": daemon_answers.refusal_says_why,
    "SIG-DAEMON-003": daemon_sessions.conflict_is_told,
    "SIG-DAEMON-004": daemon_sessions.repeated_start_gets_the_stub,
    "SIG-DAEMON-005": daemon_sessions.second_end_is_dropped,
    "SIG-DAEMON-006": daemon_answers.private_row_stays_private,
    "SIG-DAEMON-007": daemon_answers.memory_is_the_one_asked_for,
    "SIG-DAEMON-008": daemon_answers.health_names_the_version,
    "SIG-DAEMON-009": daemon_answers.secret_is_not_shown,
    "SIG-DAEMON-010": daemon_sessions.job_can_be_looked_at,
    "SIG-DAEMON-011": daemon_sessions.started_session_is_known,
    "SIG-DAEMON-012": daemon_answers.every_patch_is_answered,
}
"""Every rule of the daemon's side by requirement id."""
