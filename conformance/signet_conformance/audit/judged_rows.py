"""Judges recordings and writes rows: verdicts, sessions, breaches, and saves with an idempotency key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cache, lru_cache
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from signet_conformance.audit.manifest import BatchJob, ManifestEntry
from signet_conformance.audit.rows import VERDICT_LISTS, Breach, BreachRow, RecordingRow, Row, SaveRow, SessionRow
from signet_conformance.audit.stores import ObjectLostError, copy, is_remote
from signet_conformance.children.spread import batches
from signet_conformance.contract import document, requirements
from signet_conformance.engine import JudgedTrace, judge_each
from signet_conformance.errors import TraceError
from signet_conformance.facts import END, HOOK_REMEMBER, PROMPT, REMEMBER, START, Recording, text_or_none
from signet_conformance.files import is_special
from signet_conformance.finding import Finding, Reason, Verdict
from signet_conformance.outcome.broken_off import broke_off
from signet_conformance.outcome.known_failures import UNNAMED
from signet_conformance.rules.coverage import was_tested
from signet_conformance.rules.memory import idempotency_key
from signet_conformance.trace import Header, Trace, read
from signet_conformance.trace.reading import collector_paused
from signet_conformance.trace.recordings import SUFFIX, model_side

JOINED = frozenset({"SIG-END-002", "SIG-HEALTH-001", "SIG-END-005", "SIG-PROMPT-005", "SIG-START-004"})
"""Requirements whose verdict on a session another recording of it may settle."""
_BREACHES: Mapping[Verdict, Breach] = {
    Verdict.ERROR: "ERROR",
    Verdict.FAIL: "FAIL",
    Verdict.WARN: "WARN",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE",
}
_TOGETHER = 50
"""At most this many short recordings are judged together."""
_TOGETHER_BYTES = 2 * 1024 * 1024
_UNPACKED_TIMES = 10
"""A packed recording is assumed to unpack to this many times its size."""
_MOST_EXCHANGES = 5
_MOST_SESSIONS = 2000
"""Sessions of one recording and requirement that have a row of their own."""

_encoder = msgspec.json.Encoder()


def judge_batch(job: BatchJob) -> bytes:
    """Judge a batch and return its rows as JSON lines, recording by recording.

    The same job gives the same bytes, on any machine, however often.
    """
    hashes = Hashes(job.salt)
    lines = BytesIO()
    with collector_paused():
        for together in batches(job.entries, _size, _TOGETHER, _TOGETHER_BYTES):
            for row in _rows_of(together, job, hashes):
                lines.write(_encoder.encode(row))
                lines.write(b"\n")
    return lines.getvalue()


def _size(entry: ManifestEntry) -> int:
    return (entry.size + (entry.model_size or 0)) * (1 if entry.place.endswith(SUFFIX) else _UNPACKED_TIMES)


def _rows_of(entries: Sequence[ManifestEntry], job: BatchJob, hashes: Hashes) -> Iterator[Row]:
    traces_read: dict[str, tuple[Trace, datetime | None]] = {}
    lost: dict[str, RecordingRow] = {}
    for entry in entries:
        try:
            trace = _open_recording(entry)
        except ObjectLostError as failure:
            lost[entry.id] = RecordingRow(recording=entry.id, outcome="unreadable", why=failure.why)
            continue
        created = _instant(trace.header)
        if job.since is None or created is None or created.strftime("%Y-%m-%d") >= job.since:
            traces_read[entry.id] = (trace, created)
    traces = {name: trace for name, (trace, _) in traces_read.items()}
    judged = _judge(traces, job.contract)
    for name in traces.keys() - judged.keys():
        lost[name] = RecordingRow(recording=name, outcome="unreadable", why="damaged")
    for name in (entry.id for entry in entries):
        if name in lost:
            yield lost[name]
        elif name in judged:
            yield from rows(name, judged[name], traces_read[name][1], hashes)


def _judge(traces: Mapping[str, Trace], contract: str | None) -> Mapping[str, JudgedTrace]:
    """Judge the traces. A long one is read while it is judged; it is left out if it turns out to be damaged."""
    try:
        return dict(zip(traces, judge_each(list(traces.values()), None, contract), strict=True))
    except TraceError:
        if len(traces) == 1:
            return {}
        return {name: judged for name in traces for judged in _judge({name: traces[name]}, contract).values()}


def _open_recording(entry: ManifestEntry) -> Trace:
    place = entry.place
    with ExitStack() as stack:
        if is_remote(place):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="signet-audit-")))
            suffix = "".join(Path(place.rpartition("/")[2]).suffixes[-2:])
            copied = folder / f"recording{suffix[suffix.find('.jsonl') :]}"
            copy(place, entry.size, copied)
            if entry.model_size is not None:
                _copy_model(place, entry.model_size, copied)
            place = str(copied)
        elif is_special(place):
            raise ObjectLostError("refused")
        try:
            return read(place)
        except TraceError as failure:
            cause = failure.__context__
            if isinstance(cause, FileNotFoundError):
                raise ObjectLostError("gone") from None
            raise ObjectLostError("refused" if isinstance(cause, PermissionError) else "damaged") from None


def _copy_model(place: str, size: int, copied: Path) -> None:
    beside, beside_copy = model_side(place), model_side(str(copied))
    if beside is not None and beside_copy is not None:
        copy(beside, size, Path(beside_copy))


def rows(name: str, judged: JudgedTrace, created: datetime | None, hashes: Hashes) -> Iterator[Row]:
    """The rows of a judged recording called `name`."""
    recording, header = judged.recording, judged.trace.header
    about: dict[str, Any] = {
        "recording": name,
        "connector": clean_name(header.target) or UNNAMED,
        "connector_release": clean_name(header.connector_release),
        "host": clean_name(header.host),
        "host_release": clean_name(header.host_release),
        "harness": clean_name(_harness(recording)),
        "daemon": clean_name(header.daemon_version),
        "kit": clean_name(header.kit),
        "recorder": clean_name(header.recorder),
        "created": None if created is None else f"{created:%Y-%m-%dT%H:%M:%S}.{created.microsecond // 1000:03}Z",
        "torn": bool(judged.trace.warnings),
        "exchanges": len(judged.trace.exchanges),
        "sessions": len(recording.hooks_of),
    }
    if broke_off(judged.trace) is not None:
        yield RecordingRow(outcome="broken-off", **about)
        return
    by_verdict: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for requirement, judgement in judged.judgements.items():
        by_verdict[judgement.verdict].append(requirement)
    lists: dict[str, Any] = {name: tuple(by_verdict[verdict]) for name, verdict in VERDICT_LISTS.items()}
    yield RecordingRow(outcome="judged", **about, tested=was_tested(recording), **lists)
    begun = None if created is None else created.timestamp()
    yield from _sessions(name, recording, begun, hashes)
    for verdict in _BREACHES:
        for requirement in by_verdict[verdict]:
            yield from _breaches(name, requirement, judged, hashes)
    if judged.judgements["SIG-REM-002"].reason is not Reason.GATED:
        yield from _saves(name, recording, begun, hashes)


def _sessions(name: str, recording: Recording, begun: float | None, hashes: Hashes) -> Iterator[SessionRow]:
    for key, hooks in recording.hooks_of.items():
        operations = [str(call.operation) for call in hooks]
        starts = [call for call in hooks if call.operation == START]
        project = next((text for call in starts if (text := call.body_text("project"))), None)
        native = next((text for call in hooks if (text := call.body_text("sessionId"))), None)
        yield SessionRow(
            recording=name,
            session=str(hashes.of(key)),
            agent=str(clean_name(hooks[0].agent)),
            project=hashes.of(project),
            native=hashes.of(native),
            starts=len(starts),
            prompts=operations.count(PROMPT),
            ends=operations.count(END),
            hooks=len(hooks),
            first_operation=operations[0],
            last_operation=operations[-1],
            first=_at(begun, hooks[0].t0),
            last=_at(begun, max(call.t1 for call in hooks)),
            first_exchange=hooks[0].seq,
            last_exchange=hooks[-1].seq,
        )


def _breaches(name: str, requirement: str, judged: JudgedTrace, hashes: Hashes) -> Iterator[BreachRow]:
    judgement = judged.judgements[requirement]
    groups: dict[str | None, list[Finding]] = {}
    for finding in judgement.findings:
        key = _session(judged.recording, finding) if requirement in JOINED else None
        if key is not None and key not in groups and len(groups) >= _MOST_SESSIONS:
            key = None
        groups.setdefault(key, []).append(finding)
    for key, findings in (groups or {None: []}).items():
        first = findings[0] if findings else None
        yield BreachRow(
            recording=name,
            requirement=requirement,
            verdict=_BREACHES[judgement.verdict],
            session=hashes.of(key if requirement in JOINED or first is None else _session(judged.recording, first)),
            count=max(1, len(findings)),
            exchanges=() if first is None else first.exchanges[:_MOST_EXCHANGES],
            pointer="" if first is None else public_pointer(first.pointer),
        )


def _session(recording: Recording, finding: Finding) -> str | None:
    call = recording.by_seq.get(finding.exchanges[0]) if finding.exchanges else None
    return None if call is None else call.key


def _saves(name: str, recording: Recording, begun: float | None, hashes: Hashes) -> Iterator[SaveRow]:
    seen: set[tuple[str, str]] = set()
    for call in recording.of(REMEMBER, HOOK_REMEMBER):
        key, content = idempotency_key(call), call.body_text("content")
        if key is not None and content is not None and (key, content) not in seen:
            seen.add((key, content))
            yield SaveRow(
                recording=name,
                idempotency=str(hashes.of(key)),
                content=str(hashes.of(content)),
                exchange=call.seq,
                at=_at(begun, call.t0),
            )


def _harness(recording: Recording) -> str | None:
    declared = recording.declared.harness
    if declared is not None or not recording.hooks:
        return declared
    return text_or_none(recording.hooks[0].body.get("harness"))


def _instant(header: Header) -> datetime | None:
    """When the recording began, in UTC; None where the header does not say so."""
    if header.created is None:
        return None
    try:
        began = datetime.fromisoformat(header.created)
        return began.replace(tzinfo=UTC) if began.tzinfo is None else began.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _at(begun: float | None, t: float) -> float | None:
    return None if begun is None else round(begun + t, 3)


_NAME = re.compile(r"(?:@[a-z0-9][a-z0-9._-]{0,39}/)?[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", re.ASCII)
_SECRET = re.compile(
    r"sig_sk_|eyJ[A-Za-z0-9_-]{7}|(?:sk|pk|rk)[-_][A-Za-z0-9]|gh[a-z]_|github_pat|xox[a-z]-|AKIA|AIza|Bearer"
)
_RUN = re.compile(r"[A-Za-z0-9+_]{20,}")
_HIDDEN = "hidden-"
_STRUCTURE = frozenset(
    {"request", "response", "body", "json", "text", "headers", "query", "path", "method", "status", "fault", "data"}
)


@lru_cache(maxsize=4096)
def clean_name(text: str | None) -> str | None:
    """A name or release unchanged; for other texts, and for those that look like a secret, `hidden-` and a hash."""
    if text is None or not (text := text.strip()):
        return None
    if _NAME.fullmatch(text) and not _SECRET.search(text) and not any(map(_is_random, _RUN.findall(text))):
        return text
    return _HIDDEN + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _is_random(run: str) -> bool:
    """Whether a long run of letters and digits has both, as keys have; names seldom do."""
    return any(c.isdigit() for c in run) and any(c.isalpha() for c in run)


def public_pointer(pointer: str) -> str:
    """A JSON pointer in which each name that is not the contract's own is `*`."""
    known = _vocabulary()
    steps = pointer.split("/")[1:13]
    return "".join(f"/{step if (step.isdigit() and len(step) < 7) or step in known else '*'}" for step in steps)


@cache
def _vocabulary() -> frozenset[str]:
    """The names of members, headers and parameters that occur in the catalogue."""
    names = {name for entry in requirements().values() for read in entry.reads for name in read.names}
    for entry in requirements().values():
        if entry.check is not None:
            for schema in (entry.check.must, entry.check.should, entry.check.when):
                names |= _members(schema)
    return frozenset(names) | _STRUCTURE | frozenset(document("operations.json")["operations"])


def _members(schema: object) -> set[str]:
    if isinstance(schema, dict):
        inner = schema.get("properties")
        own = set(inner) if isinstance(inner, dict) else set()
        return own.union(*map(_members, schema.values()))
    return set[str]().union(*map(_members, schema)) if isinstance(schema, list) else set()


class Hashes:
    """Hashes of the texts of one data set: keyed, so that no text can be tested against the results alone."""

    def __init__(self, salt: str) -> None:
        self._key = bytes.fromhex(salt)[:64]

    def of(self, text: str | None) -> str | None:
        """16 hexadecimal digits; None for None."""
        if text is None:
            return None
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=self._key).hexdigest()
