"""The manifest of an audit: its recordings in their order, and the terms of judging. Written once, never changed.

It is the only file of an audit with the places of the recordings. Therefore only its owner may read it, and it is not
part of the results.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from signet_conformance import __version__
from signet_conformance.audit.stores import ListedRecording, is_remote, recordings_of
from signet_conformance.children.spread import batches
from signet_conformance.errors import UsageError, printable
from signet_conformance.files import write_whole

FILE = "manifest.jsonl"
FORMAT = "signet-audit-manifest/1"
BATCH = 250
"""Recordings of a batch, at most."""
BATCH_BYTES = 64 * 1024 * 1024
"""Bytes of a batch of several recordings, at most."""


class AuditTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an audit. `since` is a day such as 2026-11-01; None means that the option was not given."""

    datasets: tuple[str, ...]
    since: str | None = None
    sample: int | None = None
    contract: str | None = None


class ManifestEntry(msgspec.Struct, frozen=True, array_like=True):
    """One recording of the manifest: its id in the results, its name in the data set, its place, and sizes in bytes."""

    id: str
    name: str
    place: str
    size: int
    model_size: int | None = None


class BatchJob(Struct, frozen=True):
    """A batch with all that the process needs which judges it, on this machine or on another."""

    salt: str
    since: str | None
    contract: str | None
    entries: Sequence[ManifestEntry]


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    kit: str
    terms: AuditTerms
    salt: str
    count: int


class Manifest(Struct, frozen=True):
    """The recordings of an audit in their order, and the key of its hashes."""

    terms: AuditTerms
    salt: str
    entries: Sequence[ManifestEntry]

    def batches(self) -> Iterator[Sequence[ManifestEntry]]:
        """The entries as batches, always the same ones."""
        return batches(self.entries, lambda entry: entry.size, BATCH, BATCH_BYTES)

    def job(self, batch: Sequence[ManifestEntry]) -> BatchJob:
        """Return a batch with all that its judge needs."""
        return BatchJob(self.salt, self.terms.since, self.terms.contract, batch)

    def places(self) -> Mapping[str, ManifestEntry]:
        """The entries by their ids."""
        return {entry.id: entry for entry in self.entries}


def manifest_of(terms: AuditTerms) -> Manifest:
    """List the data sets; raise UsageError for one that cannot be listed or holds no recording."""
    listed: dict[str, ListedRecording] = {}
    for dataset in sorted(set(terms.datasets)):
        for each in recordings_of(dataset):
            listed.setdefault(each.place, each)
    named = sorted(listed.values(), key=lambda each: (each.name, each.size, each.place))
    entries = []
    times: dict[str, int] = {}
    for each in named:
        # Two data sets may hold the same name.
        number = times[each.name] = times.get(each.name, 0) + 1
        digest = sha256(f"{each.name}\0{number}".encode("utf-8", "surrogateescape")).hexdigest()
        entries.append(ManifestEntry(digest[:16], each.name, each.place, each.size, each.model_size))
    if terms.sample is not None:
        chosen = {entry.id for entry in sorted(entries, key=lambda entry: entry.id)[: terms.sample]}
        entries = [entry for entry in entries if entry.id in chosen]
    salt = sha256()
    for entry in entries:
        salt.update(f"{entry.name}\0{entry.size}\n".encode("utf-8", "surrogateescape"))
    return Manifest(terms, salt.hexdigest(), entries)


def open_manifest(terms: AuditTerms, folder: Path) -> tuple[Manifest, bool]:
    """Read the manifest of the audit in `folder`, or write a new one. Return it, and whether it existed.

    Raises UsageError when the folder holds an audit of something else, or by another release of the kit.
    """
    path = folder / FILE
    terms = msgspec.structs.replace(terms, datasets=tuple(sorted({_absolute_path(each) for each in terms.datasets})))
    if not path.is_file():
        manifest = manifest_of(terms)
        _write(manifest, path)
        return manifest, False
    manifest = read_manifest(folder)
    if manifest.terms != terms:
        raise UsageError(
            "holds an audit of other recordings or with other options",
            where=folder,
            remedy="name another folder: --out FOLDER",
        )
    return manifest, True


def _absolute_path(dataset: str) -> str:
    return dataset if is_remote(dataset) else os.path.abspath(dataset)  # noqa: PTH100 - no link is followed


def _write(manifest: Manifest, path: Path) -> None:
    head = _Head(format=FORMAT, kit=__version__, terms=manifest.terms, salt=manifest.salt, count=len(manifest.entries))
    lines = (msgspec.json.encode(line) + b"\n" for line in (head, *map(_encodable, manifest.entries)))
    write_whole(path, lines)


def _encodable(entry: ManifestEntry) -> ManifestEntry:
    # A name that is not UTF-8 holds lone surrogates, which JSON cannot carry.
    try:
        entry.place.encode()
    except UnicodeEncodeError:
        raise UsageError(
            "a manifest cannot hold a name that is not UTF-8", where=entry.place, remedy="rename the file"
        ) from None
    return entry


def demand_audit(folder: Path) -> None:
    """Raise UsageError for a folder in which no audit was begun."""
    if not (folder / FILE).exists():
        raise UsageError(
            "the folder holds no audit",
            where=folder,
            remedy="signet-conformance audit DATASET, or name the folder of one: --out FOLDER",
        )


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the audit in `folder`. Raises UsageError if this kit cannot continue the audit."""
    path = folder / FILE
    demand_audit(folder)
    try:
        lines = path.read_bytes().splitlines()
        head = msgspec.json.decode(lines[0], type=_Head)
        entries = [msgspec.json.decode(line, type=ManifestEntry) for line in lines[1:]]
    except (OSError, IndexError, msgspec.MsgspecError) as failure:
        raise UsageError(
            f"holds no manifest of an audit ({printable(failure, 160)})",
            where=path,
            remedy="name the folder of an audit: --out FOLDER",
        ) from None
    if head.format != FORMAT or head.kit != __version__ or head.count != len(entries):
        raise UsageError(
            f"is an audit by release {printable(head.kit, 40)} of the kit, this is {__version__}",
            where=path,
            remedy="finish it with that release, or name another folder: --out FOLDER",
        )
    return Manifest(head.terms, head.salt, entries)
