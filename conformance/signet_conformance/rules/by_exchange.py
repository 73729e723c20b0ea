"""Which rules look at one exchange after the other, so that a large recording can be judged piece by piece by them.

Over a recording such a rule yields what it yields over the pieces of the recording, one after the other. What it needs
of the whole it asks for by `Recording.whole`, and then it is asked again over the whole. Every other rule is asked over
the whole: it reads several exchanges, or says something once a recording.
"""

from __future__ import annotations

from collections.abc import Mapping

from signet_conformance.contract import requirements
from signet_conformance.rules import builtin_rules, rules
from signet_conformance.rules.daemon import DAEMON_RULES
from signet_conformance.rules.fields import check_fields
from signet_conformance.rules.outcome import Rule

_BY_EXCHANGE = frozenset(
    {
        "SIG-HTTP-001", "SIG-HTTP-002", "SIG-HTTP-003", "SIG-HTTP-004", "SIG-HTTP-005", "SIG-HTTP-006", "SIG-HTTP-008",
        "SIG-HTTP-009", "SIG-HTTP-013", "SIG-START-002", "SIG-END-003", "SIG-REC-001", "SIG-REM-001", "SIG-MEM-001",
        "SIG-MEM-003", "SIG-MEM-004", "SIG-SEC-003", "SIG-AGENT-004", "SIG-AGENT-005", "SIG-SESS-002",
    }
)  # fmt: skip
"""Of the rules on the connector; those that only check the fields of a request are of the kind as well."""
_DAEMON_BY_EXCHANGE = (
    "SIG-DAEMON-001", "SIG-DAEMON-002", "SIG-DAEMON-007", "SIG-DAEMON-008", "SIG-DAEMON-009", "SIG-DAEMON-012",
)  # fmt: skip


def exchange_rules() -> Mapping[str, Rule]:
    """The rules that look at one exchange after the other, on the connector and on the daemon, by requirement id."""
    built_in = builtin_rules()
    checks = {name: check_fields(name) for name, entry in requirements().items() if entry.check is not None}
    of_connector = {
        name: rule
        for name, rule in rules().items()
        if rule is built_in.get(name) and (name in _BY_EXCHANGE or rule is checks.get(name))
    }
    return {**of_connector, **{name: DAEMON_RULES[name] for name in _DAEMON_BY_EXCHANGE}}
