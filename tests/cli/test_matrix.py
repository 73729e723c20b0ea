"""`signet-conformance matrix`: connectors side by side, exact parity, and badges only for whole runs."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from click.testing import Result

from signet_conformance.contract import version_document
from signet_conformance.reports.matrix import surface
from tests.support.command_line import Invoke
from tests.support.report_files import report
from tests.support.trace_files import CONFORMING, HEADER, write

SCHEMA = Path(__file__).resolve().parents[2] / "schemas" / "matrix" / "signet-matrix-1.schema.json"
VERSION = ["--connector-version", "2026.6.1"]


def refused(result: Result) -> None:
    """Whether a command ended like wrong usage: status 2, a message, a remedy."""
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "\ntry: " in result.stderr


def connectors(result: Result) -> list[dict[str, Any]]:
    """The connectors of a matrix in JSON, checked by its schema."""
    document = json.loads(result.output)
    jsonschema_rs.validator_for(json.loads(SCHEMA.read_text())).validate(document)
    return list(document["connectors"])


def test_declared_observed_and_drift(invoke: Invoke, tmp_path: Path) -> None:
    """An operation is used, declared only, drift or absent; seen if nothing is declared."""
    report(tmp_path / "a.json", observed=["health", "memory-get"], declared=["health", "session-start"])
    report(tmp_path / "b.json", target="pi", observed=["health"])
    first, second = connectors(invoke("matrix", "a.json", "b.json", "--json"))
    wanted = {"health": "used", "session-start": "declared only", "memory-get": "drift", "secrets-exec": "-"}
    assert {name: first["operations"][name] for name in wanted} == wanted
    assert second["operations"]["health"] == "seen"


def test_parity_is_exact(invoke: Invoke, tmp_path: Path) -> None:
    """Twelve rows are full parity; eleven are partial, and the missing one is named."""
    report(tmp_path / "full.json", observed=[*surface(), "mcp"])
    report(tmp_path / "part.json", observed=surface()[1:])
    assert "12 of 12 operations, full parity" in invoke("matrix", "full.json").output
    assert "11 of 12 operations, partial: without session-start" in invoke("matrix", "part.json").output
    parity = [row["parity"] for row in connectors(invoke("matrix", "full.json", "part.json", "--json"))]
    assert parity == [
        {"rows": 12, "of": 12, "full": True, "missing": []},
        {"rows": 11, "of": 12, "full": False, "missing": ["session-start"]},
    ]


def test_columns_of_one_name_have_distinct_heads(invoke: Invoke, tmp_path: Path) -> None:
    """By run, else commit, else date, in the given order; a unique name stays as it is."""
    for name, commit, day in (("new/openclaw", "a" * 40, "21"), ("old/openclaw", "b" * 40, "20"), ("pi", None, "22")):
        (tmp_path / name).mkdir(parents=True)
        target = name.rpartition("/")[2]
        path = report(tmp_path / name / "report.json", target=target, observed=["health"])
        run = {"created": f"2026-11-{day}T10:00:00Z", **({} if commit is None else {"commit": commit})}
        path.write_text(json.dumps({**json.loads(path.read_text()), "run": run}))
    told = invoke("matrix", "old/openclaw", "pi", "new/openclaw").output
    assert told.splitlines()[0].split() == [
        "operation", "openclaw", "bbbbbbbbb", "0.145", "pi", "0.145", "openclaw", "aaaaaaaaa", "0.145",
    ]  # fmt: skip
    assert "openclaw bbbbbbbbb (0.145): 1 of 12 operations" in told
    for name in ("old", "new"):
        (tmp_path / name / "openclaw").rename(tmp_path / f"run-{name}")
    assert "openclaw run-old 0.145" in first_line(invoke("matrix", "run-old", "run-new"))
    for name, commit in (("old", "b"), ("new", "a")):
        text = (tmp_path / f"run-{name}" / "report.json").read_text()
        (tmp_path / f"{name}.json").write_text(text.replace(commit * 40, "c" * 40))
    assert "openclaw 2026-11-20 0.145" in first_line(invoke("matrix", "old.json", "new.json"))


def first_line(result: Result) -> str:
    """The first line that a command prints, with single blanks."""
    return " ".join(result.output.splitlines()[0].split())


def test_a_site_reports_its_files(invoke: Invoke, tmp_path: Path) -> None:
    """The output names the page to open and the number of other files."""
    report(tmp_path / "r.json", observed=surface())
    told = invoke("matrix", "r.json", "--site", "public").output.splitlines()[-1]
    beside = len(list((tmp_path / "public").iterdir())) - 1
    assert told.startswith(f"site: public/index.html, and {beside} more files beside it")


def test_a_report_of_check_can_be_read(invoke: Invoke, tmp_path: Path) -> None:
    """The output of check --json names target and operations, and the matrix shows them."""
    write(tmp_path / "run.jsonl", CONFORMING, {**HEADER, "target": "openclaw"})
    invoke("check", "run.jsonl", "--json", "--output", "report.json")
    (column,) = connectors(invoke("matrix", "report.json", "--json"))
    assert column["name"] == "openclaw"
    assert column["operations"]["memory-recall"] == "seen"
    assert column["requirements"]["SIG-AGENT-001"] == "PASS"
    assert not column["full_set"]


def test_a_badge_carries_all_three_versions(invoke: Invoke, tmp_path: Path) -> None:
    """Both forms of the badge name the versions of contract, connector and kit; the colour shows the outcome."""
    report(tmp_path / "r.json", observed=surface())
    for name in ("b.svg", "b.json"):
        assert invoke("matrix", "r.json", "--badge", name, *VERSION).exit_code == 0
    badge = json.loads((tmp_path / "b.json").read_text())
    assert badge["schemaVersion"] == 1
    assert badge["label"] == "Signet 0.145"
    assert badge["message"] == "conforming, 12/12 | openclaw 2026.6.1 | kit 0.1.0"
    assert badge["color"] == "brightgreen"
    picture = ET.fromstring((tmp_path / "b.svg").read_text())  # noqa: S314  our own
    assert picture.get("aria-label") == f"{badge['label']}: {badge['message']}"


def test_the_badge_of_a_breach_is_red(invoke: Invoke, tmp_path: Path) -> None:
    """A whole run with a breached MUST has a badge that says so; partial parity is green, but not bright."""
    report(tmp_path / "bad.json", observed=surface(), SIG_AGENT_002="FAIL")
    report(tmp_path / "part.json", observed=["health"])
    invoke("matrix", "bad.json", "--badge", "bad_badge.json", *VERSION)
    invoke("matrix", "part.json", "--badge", "part_badge.json", *VERSION)
    badges = [json.loads((tmp_path / name).read_text()) for name in ("bad_badge.json", "part_badge.json")]
    assert [badge["color"] for badge in badges] == ["red", "green"]
    assert badges[0]["message"].startswith("1 broken, 12/12")
    assert badges[1]["message"].startswith("conforming, 1/12")


@pytest.mark.parametrize("verdict", ["INCONCLUSIVE", "NOT-APPLICABLE"])
def test_no_badge_without_a_full_run(invoke: Invoke, tmp_path: Path, verdict: str) -> None:
    """No badge if coverage is undecided, a requirement was left out, or the kit failed."""
    report(tmp_path / "a.json", observed=surface(), SIG_COV_001=verdict)
    report(tmp_path / "b.json", observed=surface(), SIG_END_001="ERROR")
    partial = json.loads(report(tmp_path / "c.json", observed=surface()).read_text())
    for rows in (partial["together"], partial["traces"][0]["verdicts"]):
        del rows[version_document("0.145")["requirements"][5]]
    (tmp_path / "c.json").write_text(json.dumps(partial))
    for name in ("a.json", "b.json", "c.json"):
        refused(invoke("matrix", name, "--badge", "badge.svg", *VERSION))
        assert not (tmp_path / "badge.svg").exists()


def test_a_folder_means_the_report_in_it(invoke: Invoke, tmp_path: Path) -> None:
    """The folder of a driven run can be named in place of its report; one without a report is refused."""
    (tmp_path / "run").mkdir()
    refused(invoke("matrix", "run"))
    report(tmp_path / "run" / "report.json", observed=surface())
    whole = connectors(invoke("matrix", "run", "--json"))
    assert [row["report"] for row in whole] == ["run/report.json"]
    refused(invoke("matrix", "run", "--html", "run/report.json", "--force"))


def test_wrong_usage_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    """Two connectors, no version, another suffix and an existing file are errors of --badge."""
    report(tmp_path / "r.json", observed=surface())
    (tmp_path / "there.svg").write_text("mine")
    refused(invoke("matrix", "r.json", "r.json", "--badge", "b.svg", *VERSION))
    refused(invoke("matrix", "r.json", "--badge", "b.svg"))
    refused(invoke("matrix", "r.json", "--badge", "b.png", *VERSION))
    refused(invoke("matrix", "r.json", "--badge", "there.svg", *VERSION))
    refused(invoke("matrix", "r.json", *VERSION))
    assert (tmp_path / "there.svg").read_text() == "mine"


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 9999, '{"format": "signet-report/1"}'])
def test_a_file_that_is_no_report_is_refused(invoke: Invoke, tmp_path: Path, text: str) -> None:
    """Bad input ends with 2 and a remedy."""
    (tmp_path / "bad.json").write_text(text)
    refused(invoke("matrix", "bad.json"))
    refused(invoke("matrix", "gone.json"))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"exit": 256}, "/exit: is 256, expected a number of 255 or less"),
        ({"coverage": {"percent": 10**400, "parts": {}}}, "/coverage/percent: "),
        ({"traces": [{"file": "", "declared": {}, "verdicts": {}}]}, "/traces/0/file: is empty"),
        ({"traces": [{"file": "a", "declared": {"capabilities": 7}, "verdicts": {}}]}, "/traces/0/declared/cap"),
        ({"together": {"SIG-END-001": {"verdict": "OK", "reason": "x", "findings": []}}}, 'verdict: is "OK"'),
    ],
)
def test_an_invalid_report_is_named_with_the_place(
    invoke: Invoke, tmp_path: Path, change: dict[str, Any], place: str
) -> None:
    """The message names the file, the JSON pointer and the value; the remedy is the command that writes a report."""
    document = json.loads(report(tmp_path / "r.json").read_text())
    (tmp_path / "r.json").write_text(json.dumps({**document, **change}))
    result = invoke("matrix", "r.json")
    refused(result)
    assert place in result.stderr
    assert "signet-conformance check TRACE... --json" in result.stderr


def test_half_an_emoji_in_a_report_is_read(invoke: Invoke, tmp_path: Path) -> None:
    """A report may hold half a character of a recording."""
    path = report(tmp_path / "r.json", target="pi \ud83d", SIG_AGENT_002="FAIL")
    half = (
        path.read_text()
        .replace('"message": "x"', '"message": "\\ud83d"')
        .replace('"pointer": ""', '"pointer": "/\\ud83d"')
    )
    path.write_text(half)
    assert invoke("matrix", "r.json").exit_code == 0


def test_a_contract_that_is_not_known_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    """The remedy for a report of a later kit is that kit."""
    document = json.loads(report(tmp_path / "r.json").read_text())
    (tmp_path / "r.json").write_text(json.dumps({**document, "contract": "9.1"}))
    refused(invoke("matrix", "r.json"))


def test_hostile_names_reach_neither_terminal_nor_picture(invoke: Invoke, tmp_path: Path) -> None:
    """Escapes, bidirectional marks and markup in a report's names are escaped."""
    evil = "\x1b]0;x\x07\u202e<script>alert(1)</script>"
    report(tmp_path / "r.json", target=evil, observed=[*surface(), evil])
    result = invoke("matrix", "r.json", "--badge", "b.svg", "--connector-version", evil)
    assert result.exit_code == 0
    picture = (tmp_path / "b.svg").read_text()
    assert not set("\x1b\x07\u202e") & set(result.output + picture)
    assert "<script" not in picture


def test_a_report_that_cannot_be_read_does_not_hide_the_others(invoke: Invoke, tmp_path: Path) -> None:
    """It is reported, the others are shown, and the command ends with 2."""
    report(tmp_path / "a.json", observed=["health"])
    (tmp_path / "empty").mkdir()
    done = invoke("matrix", "empty", "a.json", "--json")
    assert done.exit_code == 2
    assert "error: empty: the folder holds no report.json" in done.stderr
    assert len(json.loads(done.stdout)["connectors"]) == 1


def test_what_only_one_lane_shows_is_listed(invoke: Invoke, tmp_path: Path) -> None:
    """A report of the real program is compared with that of the played one; breaches in only one are listed."""
    report(tmp_path / "played.json", target="codex", SIG_END_005="WARN", SIG_HTTP_001="FAIL")
    report(tmp_path / "real.json", target="codex", real="0.169.0", SIG_LOAD_002="FAIL", SIG_HTTP_001="FAIL")
    report(tmp_path / "other.json", target="pi", SIG_LOAD_001="FAIL")
    done = invoke("matrix", "played.json", "real.json", "other.json", "--json")
    assert [row.get("harness") for row in connectors(done)] == [None, "codex 0.169.0", None]
    told = {row["requirement"]: (row["played"], row["real"]) for row in json.loads(done.output)["differences"]}
    assert told == {"SIG-END-005": ("WARN", "PASS"), "SIG-LOAD-002": ("PASS", "FAIL")}
    shown = invoke("matrix", "played.json", "real.json", "--html", "matrix.html").output
    line = "codex: SIG-LOAD-002 PASS where the kit plays the harness, FAIL in the real codex 0.169.0"
    assert line in " ".join(shown.split())
    assert line in (tmp_path / "matrix.html").read_text()


def test_one_lane_alone_has_no_differences(invoke: Invoke, tmp_path: Path) -> None:
    """Without a report of each kind, nothing is compared."""
    report(tmp_path / "real.json", target="codex", real="0.169.0", SIG_LOAD_002="FAIL")
    assert "not in the other" not in invoke("matrix", "real.json").output


@pytest.fixture
def site(invoke: Invoke, tmp_path: Path) -> Path:
    """The site of three runs of openclaw and one of pi."""
    for number, (contract, verdicts) in enumerate(
        [("0.145", {}), ("0.145", {"SIG_END_001": "FAIL"}), ("0.205", {"SIG_COV_001": "INCONCLUSIVE"})]
    ):
        folder = tmp_path / "runs" / f"r{number}"
        folder.mkdir(parents=True)
        file = report(folder / "report.json", observed=surface(), **verdicts)
        document = json.loads(file.read_text())
        run = {"created": f"2026-11-0{number + 1}T10:00:00Z", "connector": f"2026.9.{number}"}
        file.write_text(json.dumps({**document, "contract": contract, "run": run}))
    (tmp_path / "runs" / "pi").mkdir()
    report(tmp_path / "runs" / "pi" / "report.json", target="pi/../<b>", observed=surface())
    assert invoke("matrix", "runs", "--site", "public").exit_code == 0
    return tmp_path / "public"


def rows(page: Path, table: str) -> list[str]:
    """The text of a table's rows on a page of the site."""
    body = page.read_text().split(f"<caption>{table}</caption>")[1].split("</table>")[0]
    return [re.sub(r"<[^>]*>", " ", row).strip() for row in body.split("<tr")[2:]]


def test_the_site_says_what_may_ship_with_which_daemon(site: Path) -> None:
    """The newest run per contract decides: breached, not whole, conforming, or no run at all."""
    openclaw, pi = (row.split() for row in rows(site / "index.html", "May this connector ship with this daemon?"))
    assert openclaw[-5:] == ["not", "shown", "2026.9.2", "no", "2026.9.1"]
    assert pi[-4:] == ["-", "yes", "not", "known"]


def test_a_connector_of_the_site_has_its_history(site: Path) -> None:
    """Its page lists its runs, the newest first, with the changes since the previous run by the same contract."""
    history = rows(site / "openclaw.html", "Runs, the newest first")
    assert ["2026-11-03" in history[0], "2026-11-02" in history[1], "2026-11-01" in history[2]] == [True] * 3
    assert history[1].count("SIG-END-001") == 2
    assert history[2].count("SIG-END-001") == 0


def test_a_whole_run_has_a_badge_on_the_site(site: Path) -> None:
    """Each contract version whose newest run is whole has a badge; no other has one."""
    badge = json.loads((site / "openclaw-0.145.json").read_text())
    assert "1 broken" in badge["message"]
    assert "2026.9.1" in badge["message"]
    assert not (site / "openclaw-0.205.svg").exists()


def test_every_address_of_the_site_is_there(site: Path) -> None:
    """Every relative link leads to a file of the site, for a hostile name too, and no file is outside of it."""
    for page in site.glob("*.html"):
        for address in re.findall(r'href="([^"#]+)"', page.read_text()):
            assert address.startswith("https://") or (site / address).is_file(), address
    assert {path.name for path in site.parent.iterdir()} == {"runs", "public"}


def test_no_connector_takes_a_page_from_the_site_or_from_another(invoke: Invoke, tmp_path: Path) -> None:
    """Names like the site's own pages, and names that give the same file name, have pages of their own."""
    names = ["index", "side-by-side", "matrix", "INDEX", "pi", "PI", "Pi", "p.i", "p-i", "p i"]
    for number, name in enumerate(names):
        report(tmp_path / f"{number}.json", target=name, observed=surface())
    report(tmp_path / "real.json", target="p", real="0.169.0")
    report(tmp_path / "like-real.json", target="p-real")
    invoke("matrix", *(path.name for path in tmp_path.glob("*.json")), "--site", "public")
    site = tmp_path / "public"
    pages = {path.name.lower() for path in site.glob("*.html")}
    assert len(pages) == len(names) + 2 + len(["index", "side-by-side"])
    shown = "".join(rows(site / "index.html", "May this connector ship with this daemon?"))
    assert all(name in shown for name in names)
    assert "Operations and requirements side by side" in (site / "index.html").read_text()
    assert "All connectors" in (site / "side-by-side.html").read_text()
    for name in names:
        (address,) = set(re.findall(rf'href="([^"]+)"><bdi>{re.escape(name)}</bdi>', (site / "index.html").read_text()))
        assert f"Signet conformance: {name}<" in (site / address).read_text()


def test_a_site_is_replaced_only_by_force(invoke: Invoke, site: Path) -> None:
    """Writing it again needs --force, and leaves other files as they are."""
    (site / "CNAME").write_text("mine")
    refused(invoke("matrix", "runs", "--site", "public"))
    assert invoke("matrix", "runs", "--site", "public", "--force").exit_code == 0
    assert (site / "CNAME").read_text() == "mine"
