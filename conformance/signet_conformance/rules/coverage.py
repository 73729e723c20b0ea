"""The requirement on the endpoints a connector uses: what it declares is what it does."""

from __future__ import annotations

from collections.abc import Iterator

from signet_conformance.contract import contract_set
from signet_conformance.facts import Recording
from signet_conformance.rules.outcome import Outcome, undecided, warn


def in_contract_set(path: str) -> bool:
    """Whether a path is one that COV-001 calls the contract, whatever the method."""
    segments = path.split("/")
    for pattern in contract_set():
        parts = pattern.split("/")
        below = parts[-1] == "**"
        if below:
            parts = parts[:-1]
        if len(segments) < len(parts) + below or (not below and len(segments) != len(parts)):
            continue
        if all(
            part == segment or (part.startswith(":") and segment)
            for part, segment in zip(parts, segments, strict=False)
        ):
            return True
    return False


def endpoints_are_declared(recording: Recording) -> Iterator[Outcome]:
    """SIG-COV-001 over one trace; a whole driven run is judged by `signet_conformance.engine`."""
    known: dict[str, bool] = {}
    outside = False
    for call in recording.calls:
        path = call.path
        if path not in known:
            known[path] = in_contract_set(path)
        if not known[path]:
            outside = True
            yield warn(
                call,
                message="an endpoint outside the contract",
                pointer="/request/path",
                expected="a path of the contract set",
                received=f"{call.method} {path}",
                fold=f"{call.method} {path}",
            )
    if recording.calls and not outside:
        observed = sorted({call.operation for call in recording.calls if call.operation})
        yield undecided(
            message=(
                "no coverage manifest is declared"
                if recording.declared.capabilities is None
                else "equality with the manifest needs a whole run"
            )
            + f"; observed: {', '.join(observed)}"
        )
