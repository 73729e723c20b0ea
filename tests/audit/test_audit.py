"""An audit of a data set: its rows, what they never say, how it goes on, and how it ends."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from signet_conformance.audit import import_extra, manifest as manifests, stores
from signet_conformance.audit.results import TABLES
from signet_conformance.errors import UsageError, pip_install
from tests.support.command_line import Invoke, Process
from tests.support.data_sets import begun, conforming, ended, header, put, table
from tests.support.trace_files import end, health, start

SCHEMAS = Path(__file__).parents[2] / "schemas" / "audit"
OUT = Path("out")


def results(folder: Path = OUT) -> dict[str, bytes]:
    """The files of an audit's results."""
    return {path.name: path.read_bytes() for path in sorted((folder / "results").iterdir())}


def summary(folder: Path = OUT) -> dict[str, Any]:
    """The summary of an audit."""
    found: dict[str, Any] = json.loads((folder / "results" / "summary.json").read_bytes())
    return found


def audit(invoke: Invoke, folder: Path, *words: object, out: str = "out", status: int = 0) -> str:
    """Audit a data set in this process; what was printed."""
    result = invoke("audit", folder, "--workers", 1, "--out", out, *words)
    assert result.exit_code == status, result.output
    return result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set: five sessions that conform, and one whose end brings no transcript."""
    folder = conforming(tmp_path / "set", 5)
    lines = [health(), start(sessionKey="s-bare"), end(sessionKey="s-bare", agentId="other-agent")]
    put(folder, "deep/er/bare.jsonl", header("r-9", 30), lines)
    return folder


def test_every_row_and_the_summary_match_their_schemas(invoke: Invoke, folder: Path) -> None:
    """The schemas in the schemas folder describe the files of an audit."""
    audit(invoke, folder, status=1)
    for name in TABLES:
        singular = name.removesuffix("es") if name == "breaches" else name.removesuffix("s")
        schema = json.loads((SCHEMAS / f"signet-audit-{singular}-1.schema.json").read_bytes())
        rows = table(OUT, name)
        assert rows
        for row in rows:
            jsonschema_rs.validator_for(schema).validate(row)
    schema = json.loads((SCHEMAS / "signet-audit-summary-1.schema.json").read_bytes())
    jsonschema_rs.validator_for(schema).validate(summary())


def test_a_data_set_may_have_the_name_of_an_internal_command(invoke: Invoke, tmp_path: Path) -> None:
    """The folder `recordings` of the working directory is one."""
    assert Path.cwd() == tmp_path
    audit(invoke, conforming(tmp_path / "recordings", 1).relative_to(tmp_path))


def test_a_breach_has_its_evidence_and_the_command_that_shows_it(invoke: Invoke, folder: Path) -> None:
    """The summary leads to the exchange, though no result holds the path of the recording."""
    audit(invoke, folder, status=1)
    cell = next(cell for cell in summary()["cells"] if cell["requirement"] == "SIG-AGENT-001")
    assert cell["show"] == f"signet-conformance audit show {cell['evidence']} --exchange 3"
    shown = invoke("audit", "show", cell["evidence"], "--exchange", 3, "--out", "out")
    assert "bare.jsonl" in shown.output.replace("\n", "")
    assert "other-agent" in shown.output


def test_no_result_says_a_path_a_text_or_a_secret_of_a_recording(invoke: Invoke, tmp_path: Path) -> None:
    """Whatever member holds it: the results have names of programs, hashes and numbers."""
    words = ("/home/anna/clients/acme", "sig_sk_Abcdef0123456789", "What is the salary of Anna?", "anna@example.org")
    for number, word in enumerate(words):
        key = f"agent:{word}:{word}"
        body = {"sessionKey": key, "agentId": word, "project": word, "harness": word, word: {"deep": word}}
        lines = [health(), start(**body), start(**body), end(sessionKey=word, agentId=word, cwd=word, transcript=word)]
        told = dict.fromkeys(("connector_release", "host", "host_release", "kit", "daemon_version"), word)
        declared = {"agents": [word], "harness": word}
        put(tmp_path / "set", f"{number}/anna.jsonl", header(word, number, word, **told, declared=declared), lines)
    result = invoke("audit", tmp_path / "set", "--workers", 1, "--out", "out", "--html", "page.html")
    assert result.exit_code == 1, result.output
    assert summary()["judged"] == len(words)
    everything = b"".join(results().values()) + Path("page.html").read_bytes()
    for part in ("anna", "Anna", "acme", "sig_sk", "salary", str(tmp_path)):
        assert part.encode() not in everything, part


def test_a_shuffled_listing_changes_nothing(invoke: Invoke, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are in the order of names, however a store lists them."""
    audit(invoke, folder, status=1)
    known = stores._local_files

    def shuffled(dataset: str) -> dict[str, int]:
        files = list(known(dataset).items())
        random.Random(7).shuffle(files)
        return dict(files)

    monkeypatch.setattr(stores, "_local_files", shuffled)
    audit(invoke, folder, out="again", status=1)
    assert results() == results(Path("again"))


def test_workers_and_a_stop_at_any_batch_change_no_byte(
    invoke: Invoke, process: Process, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes give the bytes of one; what a stopped audit has judged is not judged again."""
    audit(invoke, folder, status=1)
    done = process("audit", folder, "--workers", 2, "--out", "two")
    assert done.returncode == 1, done.stderr
    assert results() == results(Path("two"))
    monkeypatch.setattr(manifests, "BATCH", 1)
    audit(invoke, folder, out="small", status=1)
    for number in (1, 4):
        Path("small", "batches", f"{number:06}.jsonl").unlink()
    Path("small", "batches", "000004.jsonl.part").write_bytes(b'{"kind":"rec')
    kept = Path("small", "batches", "000000.jsonl")
    before = kept.stat()
    assert "goes on" in audit(invoke, folder, out="small", status=1)
    assert kept.stat().st_mtime_ns == before.st_mtime_ns
    assert results() == results(Path("small"))


def test_a_recording_that_cannot_be_read_is_a_row_and_exit_2(invoke: Invoke, folder: Path) -> None:
    """It is counted and named; the others are judged."""
    (folder / "broken.jsonl").write_text("no header\n")
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress((folder / "0000.jsonl").read_bytes())[:20])
    told = audit(invoke, folder, status=2)
    assert "unreadable (damaged): broken.jsonl" in told
    assert (summary()["judged"], summary()["unreadable"]) == (6, 2)
    assert {row["why"] for row in table(OUT, "recordings") if row["outcome"] == "unreadable"} == {"damaged"}


def test_a_pipe_among_the_recordings_is_a_row(invoke: Invoke, folder: Path) -> None:
    """Nobody may ever write into it: to read it would hold up the whole audit."""
    os.mkfifo(folder / "pipe.jsonl")
    assert "unreadable (refused): pipe.jsonl" in audit(invoke, folder, status=2)


def test_a_recording_that_is_gone_since_it_was_listed_is_a_row(invoke: Invoke, folder: Path) -> None:
    """The manifest does not change: a file that it names and that is gone is counted."""
    audit(invoke, folder, status=1)
    Path("out/batches/000000.jsonl").unlink()
    (folder / "0003.jsonl").unlink()
    assert "unreadable (gone): 0003.jsonl" in audit(invoke, folder, status=2)


def test_since_and_sample_always_choose_the_same_recordings(invoke: Invoke, folder: Path) -> None:
    """A day leaves out what began before; a sample depends on the names alone."""
    put(folder, "late.jsonl", header("r-7", 0, created="2026-11-23T00:00:01Z"), [*begun("s-late"), *ended("s-late")])
    audit(invoke, folder, "--since", "2026-11-22", out="late")
    assert (summary(Path("late"))["judged"], summary(Path("late"))["earlier"]) == (1, 6)
    chosen = []
    for out in ("s1", "s2"):
        invoke("audit", folder, "--workers", 1, "--out", out, "--sample", 3)
        chosen.append([row["recording"] for row in table(Path(out), "recordings")])
    assert chosen[0] == chosen[1]
    assert len(chosen[0]) == 3


def test_what_a_baseline_names_does_not_fail_and_what_is_new_does(invoke: Invoke, folder: Path) -> None:
    """Known failures are those of the connector, as everywhere; --fail-on says what counts."""
    audit(invoke, folder, "--write-baseline", "known.json", "--reason", "being mended", status=1)
    assert "known" in audit(invoke, folder, "--baseline", "known.json")
    audit(invoke, folder, "--baseline", "known.json", "--fail-on", "new")
    data = json.loads(Path("known.json").read_text())
    fails = [entry for entry in data["entries"] if entry["verdict"] == "FAIL"]
    Path("less.json").write_text(json.dumps({**data, "entries": [e for e in data["entries"] if e not in fails]}))
    audit(invoke, folder, "--baseline", "less.json", "--fail-on", "new", status=1)
    audit(invoke, folder, "--fail-on", "never")


def test_a_breach_is_new_since_the_release_that_brought_it(invoke: Invoke, folder: Path) -> None:
    """Earlier recordings of the connector pass, by another release."""
    lines = [health(), start(sessionKey="s-new"), end(sessionKey="s-new", agentId="other-agent")]
    (folder / "deep/er/bare.jsonl").unlink()
    put(folder, "new.jsonl", header("r-8", 90, connector_release="2.0.0"), lines)
    told = audit(invoke, folder, "--html", "page.html", status=1)
    seen = re.search(
        r"SIG-AGENT-001 (in 1 of \d+ recordings?, since 2026-11-21), release 2\.0\.0, new with 2\.0\.0", told
    )
    assert seen is not None
    assert seen[1] in Path("page.html").read_text()
    cell = next(cell for cell in summary()["cells"] if cell["requirement"] == "SIG-AGENT-001")
    assert (cell["release"], cell["new_since"], cell["first_seen"]) == ("2.0.0", "2.0.0", "2026-11-21T09:30:00.000Z")


def test_another_audit_does_not_go_on_in_the_same_folder(invoke: Invoke, folder: Path) -> None:
    """The folder keeps the audit for which its manifest was made."""
    audit(invoke, folder, status=1)
    told = audit(invoke, folder, "--sample", 2, status=2)
    assert "holds an audit of other recordings" in told
    assert "try: name another folder" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["no-such"], "cannot be listed"),
        (["set", "--since", "yesterday"], "'yesterday' is not a day"),
        (["set", "--fail-on", "new"], "add --baseline FILE"),
        (["set", "--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "leave one out"),
        (["s3://key:secret@bucket/x"], "an address with a secret in it"),
        (["https://127.0.0.1:1/x?secret@"], "an address with a secret in it"),
        (["s3://bucket/x?X-Amz-Signature=secret@"], "an address with a secret in it"),
        (["nonsense://x/y"], "no store is known for nonsense://"),
        ([], "names no data set"),
    ],
)
def test_an_audit_that_cannot_begin_ends_with_one_line_and_a_remedy(
    invoke: Invoke, folder: Path, words: list[str], told: str
) -> None:
    """The exit status is 2, and no secret of the address is repeated."""
    del folder
    result = invoke("audit", *words)
    assert result.exit_code == 2
    assert told in result.output
    assert "try: " in result.output
    assert "secret@" not in result.output
    assert not Path("signet-audit").exists()


@pytest.mark.parametrize("words", [("show", "abc"), ("query", "SELECT 1")], ids=["show", "query"])
def test_show_and_query_without_an_audit_name_the_command_that_makes_one(
    invoke: Invoke, folder: Path, words: tuple[str, ...]
) -> None:
    """The error names the folder, too."""
    del folder
    told = invoke("audit", *words).stderr
    assert told.startswith("error: signet-audit: the folder holds no audit\ntry: signet-conformance audit DATASET")


# -- queries


def test_the_tables_answer_sql(invoke: Invoke, folder: Path) -> None:
    """As JSON lines and as Parquet, with the same columns."""
    sql = "SELECT connector, count(*) AS n FROM recordings WHERE list_contains(failed, 'SIG-AGENT-001') GROUP BY 1"
    for form in ("jsonl", "parquet"):
        audit(invoke, folder, "--format", form, out=form, status=1)
        asked = invoke("audit", "query", sql, "--out", form, "--json")
        assert json.loads(asked.output) == {"connector": "openclaw", "n": 1}
    assert not Path("parquet/results/recordings.jsonl").exists()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('out/manifest.jsonl')",
        "SELECT * FROM 'out/manifest.jsonl'",
        "COPY recordings TO 'stolen.csv'",
        "ATTACH 'new.db'",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
        "SELECT nothing FROM recordings",
        "INSTALL httpfs",
        "DELETE FROM recordings",
    ],
)
def test_a_query_reads_the_tables_and_nothing_else(invoke: Invoke, audited: None, sql: str) -> None:
    """Files, other databases, settings and second statements are refused."""
    del audited
    result = invoke("audit", "query", sql, "--out", "out")
    assert result.exit_code == 2, result.output
    assert "error: audit query: " in result.output
    assert not Path("stolen.csv").exists()


@pytest.fixture
def audited(invoke: Invoke, folder: Path) -> None:
    """A data set that was audited."""
    audit(invoke, folder, status=1)


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    """So is the command that needs it."""
    with pytest.raises(UsageError) as caught:
        import_extra("signet_no_such_package", "audit query")
    assert "audit query needs the package signet_no_such_package" in caught.value.message
    assert pip_install("fleet") in str(caught.value.remedy)
