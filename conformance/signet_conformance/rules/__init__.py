"""The built-in rules: one visible table, requirement id to the function that checks it.

A rule is a generator over a :class:`~signet_conformance.facts.Recording` that yields a plain PASS for
a subject that conforms and a finding for one that does not, or that cannot be decided. A rule that
yields nothing had no subject.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from signet_conformance.contract import requirements
from signet_conformance.errors import UsageError
from signet_conformance.rules import (
    clears,
    compaction,
    conversation,
    coverage,
    daemon_answers,
    daemon_sessions,
    deeds,
    end,
    handlers,
    host_ids,
    identity,
    injected,
    installation,
    memory,
    patience,
    prompt,
    refusals,
    replies,
    robustness,
    searches,
    spoken,
    start,
    tokens,
    transport,
    words,
)
from signet_conformance.rules.fields import check_fields
from signet_conformance.rules.outcome import Rule, RunRule

_WRITTEN: Mapping[str, Rule] = {
    "SIG-HTTP-001": transport.body_is_object,
    "SIG-HTTP-002": transport.content_type_is_json,
    "SIG-HTTP-003": transport.route_is_served,
    "SIG-HTTP-004": transport.runtime_path_is_known,
    "SIG-HTTP-005": transport.runtime_paths_agree,
    "SIG-HTTP-006": transport.keyed_hook_has_runtime_path,
    "SIG-HTTP-007": transport.key_keeps_runtime_path,
    "SIG-HTTP-008": transport.hooks_are_not_disabled,
    "SIG-HTTP-009": tokens.token_travels_in_authorization,
    "SIG-HTTP-010": refusals.refused_request_is_not_repeated,
    "SIG-HTTP-011": refusals.backs_off_after_503,
    "SIG-HTTP-012": refusals.stops_after_conflict,
    "SIG-HTTP-013": tokens.token_is_sent,
    "SIG-HTTP-014": refusals.undisturbed_call_is_accepted,
    "SIG-HTTP-015": refusals.waits_after_429,
    "SIG-HEALTH-001": transport.health_comes_first,
    "SIG-START-002": start.key_is_sent,
    "SIG-START-003": start.project_is_the_folder,
    "SIG-START-004": start.start_comes_first,
    "SIG-START-005": start.start_is_not_repeated,
    "SIG-START-006": clears.cleared_context_is_said,
    "SIG-START-007": start.native_agent_id_stays_apart,
    "SIG-START-008": start.claim_only_is_recovery,
    "SIG-PROMPT-003": prompt.one_submission_before_the_model,
    "SIG-PROMPT-005": prompt.prompt_uses_a_started_key,
    "SIG-PROMPT-006": prompt.unknown_session_is_started,
    "SIG-PROMPT-007": injected.injected_text_stays_out,
    "SIG-PROMPT-008": prompt.few_prompts_in_flight,
    "SIG-PROMPT-010": spoken.text_is_the_current_prompt,
    "SIG-PROMPT-011": spoken.every_turn_is_submitted,
    "SIG-PROMPT-012": words.words_arrive_as_they_were_said,
    "SIG-PROMPT-013": replies.last_message_is_the_newest_reply,
    "SIG-END-002": end.end_names_the_started_session,
    "SIG-END-003": end.transcript_is_sent,
    "SIG-END-004": end.working_directory_is_the_project,
    "SIG-END-005": end.started_key_is_ended,
    "SIG-END-006": end.end_is_not_repeated,
    "SIG-END-007": end.nothing_but_a_turn_follows_the_last_end,
    "SIG-END-008": end.boundary_reason_is_given,
    "SIG-END-009": clears.clear_means_a_discarded_context,
    "SIG-END-010": start.old_key_ends_before_the_new_starts,
    "SIG-END-012": conversation.turns_stand_in_order,
    "SIG-END-013": spoken.user_turns_are_the_users,
    "SIG-CKPT-001": compaction.checkpoint_is_whole,
    "SIG-CMP-002": compaction.summary_is_what_is_left,
    "SIG-CMP-003": compaction.complete_follows_pre,
    "SIG-CMP-004": compaction.one_complete_a_pre,
    "SIG-CMP-007": compaction.compaction_lies_inside_the_session,
    "SIG-CMP-008": compaction.pre_is_completed,
    "SIG-CMP-009": compaction.pre_is_answered_first,
    "SIG-REC-001": memory.recall_has_a_query,
    "SIG-REC-004": memory.recall_carries_the_open_key,
    "SIG-REC-005": searches.search_is_what_was_asked,
    "SIG-REM-001": memory.save_has_content,
    "SIG-REM-002": memory.repeated_save_keeps_its_key,
    "SIG-MEM-001": memory.memory_id_is_a_segment,
    "SIG-MEM-003": memory.mutation_has_a_reason,
    "SIG-MEM-004": memory.version_is_a_positive_integer,
    "SIG-MEM-005": memory.large_forget_is_confirmed,
    "SIG-MEM-006": deeds.deed_is_what_was_asked,
    "SIG-SEC-002": memory.secret_job_is_polled_to_its_end,
    "SIG-SEC-003": tokens.canary_stays_out,
    "SIG-SEC-004": tokens.printed_text_is_clean,
    "SIG-AGENT-001": identity.key_keeps_its_agent,
    "SIG-AGENT-002": identity.call_runs_as_the_declared_agent,
    "SIG-AGENT-004": identity.body_agent_agrees_with_the_key,
    "SIG-AGENT-005": identity.agent_is_not_the_harness,
    "SIG-AGENT-006": identity.memory_is_read_as_the_declared_agent,
    "SIG-AGENT-007": identity.notifications_are_the_sessions,
    "SIG-SESS-001": identity.keys_are_distinct,
    "SIG-SESS-002": identity.session_is_not_taken_for_noise,
    "SIG-SESS-003": identity.harness_is_constant,
    "SIG-SESS-004": host_ids.hooks_follow_the_host_id,
    "SIG-SESS-005": host_ids.sessions_of_host_are_apart,
    "SIG-FAIL-001": robustness.turn_takes_place_without_daemon,
    "SIG-FAIL-002": robustness.slow_call_is_abandoned,
    "SIG-FAIL-003": robustness.bad_answer_does_not_stop_hooks,
    "SIG-FAIL-004": robustness.bypass_is_silent,
    "SIG-FAIL-005": robustness.odd_answer_is_tolerated,
    "SIG-FAIL-006": patience.answer_in_time_is_used,
    "SIG-FAIL-007": robustness.works_again_after_trouble,
    "SIG-COV-001": coverage.endpoints_are_declared,
    "SIG-LOAD-001": handlers.connector_loads,
    "SIG-LOAD-002": installation.installed_files_are_accepted,
    "SIG-LOAD-003": handlers.address_is_the_given_one,
    "SIG-LOAD-005": installation.nothing_stands_twice,
    "SIG-LOAD-004": handlers.nothing_goes_on_after_the_host,
}

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

_OVER_A_RUN: Mapping[str, RunRule] = {
    "SIG-COV-001": coverage.observed_operations_are_the_declared_ones,
}
"""The rules that all traces of a run decide together, beside the rules over each trace."""

_added: dict[str, Rule] = {}


@cache
def builtin_rules() -> Mapping[str, Rule]:
    """Every built-in rule by requirement id: those that are field checks, and those written in Python."""
    checked = {name: check_fields(name) for name, entry in requirements().items() if entry.check is not None}
    return {**checked, **_WRITTEN}


def rule_for(requirement: str) -> Callable[[Rule], Rule]:
    """Register a rule of one's own for a requirement id; an id that has a rule already is refused."""

    def register(rule: Rule) -> Rule:
        if requirement in rules():
            raise UsageError(
                f"{requirement} has a rule already", remedy="choose an id of your own, such as ACME-HTTP-001"
            )
        _added[requirement] = rule
        return rule

    return register


def rules() -> Mapping[str, Rule]:
    """All rules in the catalogue's order, those that users added last."""
    return {**_in_order(), **_added} if _added else _in_order()


@cache
def _in_order() -> Mapping[str, Rule]:
    known = builtin_rules()
    return {name: known[name] for name in requirements() if name in known}


def run_rules() -> Mapping[str, RunRule]:
    """The rules over a whole run, by requirement id."""
    return _OVER_A_RUN
