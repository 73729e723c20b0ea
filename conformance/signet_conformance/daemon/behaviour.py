"""The differences between the versions of the contract, as data: handlers depend on the version only through these."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from signet_conformance.errors import UsageError


@dataclass(frozen=True)
class Behaviour:
    """The traits of one contract version; the defaults are those of 0.145."""

    contract: str
    reported: str
    early: bool = False
    """Sessions, hooks, saving and recall are those of the first contract: `handlers.early` answers them."""
    keys_are_raw: bool = False
    """Session keys count as they come, with blanks and a leading ``session:``."""
    body_limit: int | None = 10 * 1024 * 1024
    """Larger bodies are refused with 413; None takes any."""
    api_keys: bool = True
    """API keys exist, and some routes need no credential; without this trait every request needs a signed token."""
    open_to_origins: bool = False
    """Pages of every origin may read the answers."""
    tombstone_takes_claim_path: bool = False
    """The tombstone bears the claim's runtime path when the end had none."""
    claims_by_agent: bool = False
    """Claims belong to agent and key, not to the key alone."""
    claims_persist: bool = False
    """Claims survive a restart of the daemon."""
    dedupe_key_is_session_key: bool = False
    """A repeated start is recognised by its session key alone, and a start after an end counts as new."""
    start_has_envelope: bool = False
    """Start answers carry stableSystemPrompt, dynamicContext and the context hash."""
    claim_only: bool = False
    """Start knows ``claimOnly``."""
    prompt_has_envelope: bool = False
    """Prompt answers carry dynamicContext and the context hash."""
    prompt_has_clock: bool = False
    """Prompt answers carry clockContext, one line with the time of the turn."""
    synthesis_is_gone: bool = False
    """synthesis/complete is refused with 410."""
    prompt_limit: int | None = None
    """How many prompts may be in flight; the next one is answered 503."""
    recall_is_plain: bool = False
    """Recall knows no epochs, times, aggregates or budgets, and its rows name neither visibility nor scope."""
    saving_is_plain: bool = False
    """Duplicates are found across agents; idempotency keys, windows of validity and structure go unchecked."""
    agents_are_strangers: bool = False
    """Hooks and saves do not register agents: all but the default one read their own rows only."""
    agents_share_rows: bool = False
    """Every agent reads every row, private ones too."""
    row_is_short: bool = False
    """GET memory/:id leaves out source path, runtime path and idempotency key."""
    prompt_says_engine: bool = True
    """Prompt answers without results name the engine that searched."""
    end_says_queued: bool = True
    """Session-end answers contain ``queued`` even when nothing is queued."""
    end_has_capture_job: bool = False
    """Session-end answers with transcriptCaptureJobId and checks capturedAt."""
    context_epochs: bool = True
    """Compaction-complete opens a new recall epoch and reads agent and project."""
    exec_is_job: bool = True
    """secrets/exec answers 202 with a job, not 200 with the output."""
    health: str = "pipeline"
    """The shape of /health: small, pipeline or workers."""
    later_hooks: bool = True
    """skill-invocation, sessions/search, the stored transcript and the codex note exist."""
    notifications: bool = False
    """hooks/notifications and hooks/transcript-capture/:id exist."""
    checkpoint_always_skips: bool = False
    """session-checkpoint-extract answers skipped, whatever it is given."""
    skill_conflict_is_409: bool = False
    """skill-invocation is refused when the other runtime path holds the session."""

    @property
    def grown(self) -> bool:
        """Whether this contract came after the first one."""
        return not self.early


_TRAITS: Final = json.loads(Path(__file__).with_name("versions.json").read_bytes())
VERSIONS: Final = {contract: Behaviour(contract, **traits) for contract, traits in _TRAITS.items()}
"""Each contract version's behaviour; `versions.json` names the traits that are not those of 0.145."""


def behaviour_of(version: str) -> Behaviour:
    """The behaviour of a contract version such as ``0.145``, or of a release of one such as ``0.145.7``."""
    behaviour = VERSIONS.get(".".join(version.split(".")[:2]))
    if not behaviour:
        raise UsageError(f"there is no daemon version {version!r}", remedy=f"choose one of {', '.join(VERSIONS)}")
    return behaviour
