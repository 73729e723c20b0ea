"""Sends requests that were recorded at a real daemon (probes) to any daemon.

From the answers it finds the contract version that fits best and the answers that differ, and drafts a new version.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from signet_conformance.contract import catalogue, document, version_document, version_key
from signet_conformance.contract.routes import route_table
from signet_conformance.errors import NothingTestedError, printable
from signet_conformance.files import create_file
from signet_conformance.files.json_values import member_of, only_text
from signet_conformance.probing.replay import ProbeAnswer, Row, differences, recorded, row_of, send_probes
from signet_conformance.running.daemon import DaemonUnderTest

PROBES = "0.145.7"
"""The release whose recorded requests are the probes."""
_ANSWER_TIMEOUT_S = 120.0
_LONGEST_MS = 5000
_WORKSPACE = {
    "agent.yaml": "agent:\n  name: Trace Agent\n  description: Answers probes\n",
    "MEMORY.md": "# Working memory\n\nThe billing service moves to gRPC.\n",
}
_TOO_LARGE = "11 MiB"
_NOT_SERVED = (404, "404 Not Found")


@dataclass(frozen=True, slots=True)
class OtherAnswer:
    """A probe that the daemon answers differently from the version. `operation` is None outside the contract."""

    probe: str
    operation: str | None
    differences: Sequence[str]


@dataclass(frozen=True, slots=True)
class ProbedAnswers:
    """The answers of a daemon (`rows`), and those of the embedded daemon of each contract version.

    `agreeing` counts, by version, the probes that both answer alike.
    """

    reported: str | None
    rows: Sequence[Row]
    versions: Mapping[str, Sequence[Row]]
    agreeing: Mapping[str, int]

    @property
    def best(self) -> str:
        """The version that agrees in most answers; the newest of several."""
        return max(self.agreeing, key=lambda version: (self.agreeing[version], version_key(version)))

    def other_answers(self, version: str) -> Iterator[OtherAnswer]:
        """Yield the probes that the daemon answers differently from `version`, in order."""
        routes = route_table(version)
        for expected, actual in zip(self.versions[version], self.rows, strict=True):
            if differing := _compare(expected, actual):
                route = routes.find(actual["request"]["method"], actual["request"]["path"].partition("?")[0])
                yield OtherAnswer(actual["id"], None if route is None else route.operation, differing)


def requirements_on(operation: str) -> Sequence[str]:
    """The requirements whose verdicts depend on the answers of an operation."""
    return [
        name
        for name, requirement in catalogue().items()
        if operation in (requirement.rests_on or ())
        or (requirement.side == "daemon" and operation in requirement.operations)
    ]


def learn(choice: str, versions: Sequence[str], tell: Callable[[str], None]) -> ProbedAnswers:
    """Send the probes to the daemon of `choice` and to the embedded daemons of `versions`; `tell` reports progress.

    Each started daemon has a temporary workspace of its own. Raises NothingTestedError if a daemon stops answering.
    """
    rows = [row for row in recorded(PROBES) if _is_usable(row)]
    actual = _answers(choice, rows, tell)
    answers = {version: _answers(f"embedded:{version}", rows, tell) for version in versions}
    agreeing = {
        version: sum(not _compare(expected, answer) for expected, answer in zip(theirs, actual, strict=True))
        for version, theirs in answers.items()
    }
    return ProbedAnswers(only_text(member_of(actual[0]["response_body"], "version")), actual, answers, agreeing)


def _is_usable(row: Row) -> bool:
    # A daemon refuses a body over the limit while it is being sent, so its answer may not arrive. And one probe, which
    # saves megabytes, takes a real daemon longer than all others together.
    return _TOO_LARGE not in row["request"].get("body_note", "") and row["ms"] < _LONGEST_MS


def _answers(choice: str, rows: Sequence[Row], tell: Callable[[str], None]) -> Sequence[Row]:
    with TemporaryDirectory(prefix="signet-probes-") as name:
        folder = Path(name).resolve()
        # An answer to session-start contains these files, and the recorded daemons had them.
        for file, text in _WORKSPACE.items():
            (folder / file).write_text(text, "utf-8")
        daemon = DaemonUnderTest(choice, folder)
        try:
            daemon.start()
            tell(f"{printable(choice, 60)}: {len(rows)} probes")
            return asyncio.run(_send_all(daemon.url, choice, rows))
        finally:
            daemon.close()


async def _send_all(url: str, choice: str, rows: Sequence[Row]) -> Sequence[Row]:
    answered: list[Row] = []
    async with httpx.AsyncClient(base_url=url, timeout=_ANSWER_TIMEOUT_S, trust_env=False) as client:
        try:
            async for answer in send_probes(client, rows):
                answered.append(row_of(rows[len(answered)], answer))
        except httpx.HTTPError as failure:
            raise NothingTestedError(
                f"the daemon gives no answer to probe {rows[len(answered)]['id']}: "
                f"{printable(failure, 160) or type(failure).__name__}",
                where=f"--daemon {printable(choice)}",
                remedy="look into the output of the daemon",
            ) from None
    return answered


def _compare(expected: Row, row: Row) -> Sequence[str]:
    answer = ProbeAnswer(row["status"], row["response_headers"], row["response_body"], row["response_is_json"])
    if answer.is_json != expected["response_is_json"] and answer.status == expected["status"]:
        return [f"{'JSON' if answer.is_json else 'text'}, not {'text' if answer.is_json else 'JSON'}"]
    return list(differences(expected, answer))


def write_draft(probed: ProbedAnswers, folder: Path) -> Sequence[Path]:
    """Write the answers, and drafts of version and routes for a person to edit, into a new folder.

    Raises OSError if the folder exists or cannot be made.
    """
    folder.mkdir()
    release = probed.reported or "0.0.0"
    version = ".".join(release.split(".")[:2])
    answers = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in probed.rows)
    routes = json.dumps(_routes(probed, release), indent=2, ensure_ascii=False) + "\n"
    frozen = json.dumps(_version(probed, version, release, routes), indent=2, ensure_ascii=False) + "\n"
    files = {
        folder / f"answers-{release}.jsonl": answers,
        folder / f"routes-{version}.json": routes,
        folder / f"{version}.json": frozen,
    }
    for path, text in files.items():
        create_file(path, [text.encode()])
    return list(files)


def _version(probed: ProbedAnswers, version: str, release: str, routes: str) -> Mapping[str, Any]:
    base = version_document(probed.best)
    return {
        **base,
        "version": version,
        "daemon_versions": {"from": release, "reference": release},
        "confidence": "low",
        "routes": f"routes/{version}.json",
        "routes_sha256": hashlib.sha256(routes.encode()).hexdigest(),
        "changes_from": probed.best,
        "changes": _changes(probed),
    }


def _changes(probed: ProbedAnswers) -> Sequence[Mapping[str, Any]]:
    """By operation, the members that the daemon's answers gained or lost, and the statuses that changed."""
    routes = route_table(probed.best)
    changes: dict[tuple[str, str | None, str], str | None] = {}
    for expected, actual in zip(probed.versions[probed.best], probed.rows, strict=True):
        route = routes.find(actual["request"]["method"], actual["request"]["path"].partition("?")[0])
        if route is None or route.operation is None or not _compare(expected, actual):
            continue
        if expected["status"] != actual["status"]:
            note = f"{actual['id']} is answered {actual['status']}, not {expected['status']}"
            changes.setdefault((route.operation, "response", "changed"), note)
            continue
        before, after = (
            set(row["response_body"]) if isinstance(row["response_body"], dict) else set() for row in (expected, actual)
        )
        for names, change in ((after - before, "added"), (before - after, "removed")):
            for name in sorted(names):
                if name.isidentifier():
                    changes.setdefault((route.operation, f"response.{name}", change), f"seen in {actual['id']}")
        if before == after:
            changes.setdefault((route.operation, "response", "changed"), f"{actual['id']} gets another answer")
    return [
        {"operation": operation, "field": member, "change": change, "note": note}
        for (operation, member, change), note in changes.items()
    ]


def _routes(probed: ProbedAnswers, release: str) -> Mapping[str, Any]:
    """The routes of the best version, without those that the daemon answered with its 404."""
    base = document(f"routes/{probed.best}.json")
    table = route_table(probed.best)
    missing = set()
    for actual in probed.rows:
        route = table.find(actual["request"]["method"], actual["request"]["path"].partition("?")[0])
        if route is not None and (actual["status"], actual["response_body"]) == _NOT_SERVED:
            missing.add((route.method, route.path))
    return {
        **base,
        "daemon_version": release,
        "complete": False,
        "confidence": "low",
        "note": f"Drafted from the routes of {probed.best} and the answers of a daemon {release}; routes without a"
        " probe were not looked at.",
        "routes": [row for row in base["routes"] if (row["method"], row["path"]) not in missing],
    }
