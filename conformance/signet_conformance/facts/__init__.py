"""What one exchange means to the daemon: operation, session key, effective agent, runtime path, acceptance.

A :class:`Call` is an exchange with these facts worked out once, by the daemon's own precedence
(the subject terms of schemas/requirements; 0.145.7). A :class:`Recording` is a trace with its calls in
order and the indexes that rules read. Both are read-only.
"""

from signet_conformance.facts.calls import (
    AGENT_CALLS as AGENT_CALLS,
    AGENT_HEADER as AGENT_HEADER,
    BOUNDS as BOUNDS,
    CHECKPOINT as CHECKPOINT,
    CLAIM_CHECKING as CLAIM_CHECKING,
    COMPLETE as COMPLETE,
    DELETE as DELETE,
    END as END,
    EXEC as EXEC,
    EXEC_JOB as EXEC_JOB,
    FIRST_CALLS as FIRST_CALLS,
    FORGET as FORGET,
    GET as GET,
    HEALTH as HEALTH,
    HOOK_RECALL as HOOK_RECALL,
    HOOK_REMEMBER as HOOK_REMEMBER,
    LIFECYCLE as LIFECYCLE,
    MEMORY_SEARCH as MEMORY_SEARCH,
    MODIFY as MODIFY,
    NOTIFY as NOTIFY,
    PARENT_MEMBERS as PARENT_MEMBERS,
    PATCH as PATCH,
    PATH_HEADER as PATH_HEADER,
    PRE as PRE,
    PROMPT as PROMPT,
    RECALL as RECALL,
    REDACTION as REDACTION,
    REMEMBER as REMEMBER,
    SAVES as SAVES,
    SEARCH_SESSIONS as SEARCH_SESSIONS,
    START as START,
    Call as Call,
    pattern_agent as pattern_agent,
    plain as plain,
    text_or_none as text_or_none,
)
from signet_conformance.facts.recording import (
    NeedsWholeError as NeedsWholeError,
    Recording as Recording,
    once_a_recording as once_a_recording,
)
from signet_conformance.facts.sessions import (
    OPENING as OPENING,
    HostId as HostId,
)
from signet_conformance.facts.timeline import Turn as Turn
