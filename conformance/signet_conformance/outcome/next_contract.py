"""Breaches of the next contract by a connector whose release lies between two: information, no exit status."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from signet_conformance.contract import (
    catalogue_place,
    contract_version_of,
    contract_versions,
    reference_daemon,
    version_document,
    version_key,
)
from signet_conformance.engine import JudgedTrace, judge
from signet_conformance.errors import ContractError
from signet_conformance.finding import BREACHES, FOLDING_ORDER, Verdict


class NewerBreach(Struct, frozen=True, omit_defaults=True, rename={"path": "file"}):
    """A requirement that the next contract would find breached, and this one does not.

    It is breached in `traces` traces; `message` is the first breach in words, `path` the recording that shows it.
    """

    verdict: Verdict
    traces: int
    message: str
    path: str | None = None


class NewerContract(Struct, frozen=True, rename={"version": "contract"}):
    """Breaches of contract `version` by requirement, the worst first; `of` traces were judged."""

    version: str
    of: int
    breaches: Mapping[str, NewerBreach]

    @property
    def words(self) -> str:
        """All of it in one line; empty where nothing more would be breached."""
        return later_words(self.version, self.of, {name: breach.traces for name, breach in self.breaches.items()})


def later_words(version: str, of: int, traces: Mapping[str, int]) -> str:
    """Say which requirements of contract `version` are breached, each in how many of `of` traces; empty if none."""
    breaches = ", ".join(f"{name} in {count} of {of}" for name, count in traces.items())
    return f"would breach {version}: {breaches}" if breaches else ""


def next_contract(judged: JudgedTrace, release: str | None) -> str | None:
    """The contract after the one that judged a trace, where the connector's `release` lies between the two."""
    known = judged.trace.header.connector_release or release
    here = contract_version_of(judged.daemon_version)
    later = [version for version in contract_versions() if version_key(version) > version_key(here)]
    if known is None or not later:
        return None
    first = str(version_document(later[0])["daemon_versions"]["from"])
    try:
        is_between = version_key(reference_daemon(here)) < version_key(known) < version_key(first)
    except ContractError:
        # Not every connector numbers its releases as the daemon does.
        return None
    return later[0] if is_between else None


class NewerJudging:
    """Judges traces by the next contract too, where the release of their connector calls for it."""

    def __init__(self, only: frozenset[str] | None, release: str | None) -> None:
        self._only = only
        self._release = release
        self._version: str | None = None
        self._of = 0
        self._breaches: dict[str, NewerBreach] = {}

    def add(self, judged: JudgedTrace) -> None:
        """Take one judged trace into account."""
        version = next_contract(judged, self._release)
        if version is None or self._version not in (None, version):
            return
        self._version = version
        self._of += 1
        for name, later in judge(judged.trace, self._only, version).judgements.items():
            now = judged.judgements.get(name)
            if later.verdict not in BREACHES or (now is not None and now.verdict in BREACHES):
                continue
            message = later.findings[0].message if later.findings else later.message
            shown = self._breaches.get(name) or NewerBreach(later.verdict, 0, message, judged.trace.path)
            worst = min(shown.verdict, later.verdict, key=FOLDING_ORDER.index)
            self._breaches[name] = replace(shown, verdict=worst, traces=shown.traces + 1)

    def newer(self) -> NewerContract | None:
        """Breaches of the next contract; None if the release is judged by the newest that fits."""
        if self._version is None:
            return None
        worst = sorted(
            self._breaches.items(), key=lambda item: (FOLDING_ORDER.index(item[1].verdict), catalogue_place(item[0]))
        )
        return NewerContract(self._version, self._of, dict(worst))
