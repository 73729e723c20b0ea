"""Write the index of the requirements, the list of the self-test's variants, and the counts on other pages.

The files are docs/requirements/README.md, ci/tools/self-test-variants.md, README.md and docs/tutorial.md. docs_hook.py
makes the page of each requirement when the documentation is built; these pages are not committed.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.contract import sentences

SCHEMAS = Path(__file__).parents[2] / "schemas"
INDEX = Path(__file__).parents[2] / "docs" / "requirements" / "README.md"
VARIANTS = Path(__file__).with_name("self-test-variants.md")
PYTEST_RUNS = (Path(__file__).parents[2] / "README.md", Path(__file__).parents[2] / "docs" / "tutorial.md")
"""Pages that show a run of pytest."""

_DECIDED = {
    "trace": "A recording decides, however it was made.",
    "marks": "Only a run driven by the kit decides: it takes the kit's own marks of steps and faults.",
}
_APART = {
    "daemon": "A recording decides; it is judged on the daemon's side and changes no verdict of the connector.",
    "harness": "A recording and that of the harness's model decide; it changes no verdict of the connector.",
}

TERMS = (
    (
        "start, prompt, end, checkpoint",
        "a request to `session-start`, `user-prompt-submit`, `session-end`, `session-checkpoint-extract`",
    ),
    ("pre, complete", "in sentences: a request to `pre-compaction`, `compaction-complete`"),
    ("lifecycle hook", "a request to one of these six"),
    (
        "claim-checking hook",
        (
            "a request to `hooks/remember` or `hooks/recall`: the daemon checks which runtime path has"
            " claimed the key, but makes no claim"
        ),
    ),
    ("hooks of a key", "the lifecycle hooks with that key, in the order of their exchanges"),
    ("save", "a request to `memory/remember`, `memory/save`, `hook/remember` or `hooks/remember`"),
    (
        "agent call",
        (
            "a lifecycle hook, `skill-invocation`, `hooks/remember`, `hooks/recall`, `memory/remember`,"
            " `memory/recall`, `memory/feedback` or `sessions/search`"
        ),
    ),
    (
        "key",
        (
            "the session key of a request, trimmed and without a leading `session:`; the daemon treats requests with"
            " one key as one session"
        ),
    ),
    ("open", "a key is open from its start or prompt to its next end, whatever the daemon answers"),
    ("blank", "absent, not a string, or nothing but white space"),
    ("delivered", "an answer that arrived at the connector"),
    ("accepted", "delivered, with a status 2xx and a JSON object, and not spoiled by a fault"),
    (
        "stub answer",
        (
            "the short answer to a repeated start: no memories, the name `Agent`, and an `inject` that begins"
            " with `[memory active`"
        ),
    ),
    ("runtime path", "the header `x-signet-runtime-path`, or else `runtimePath` in the body: `plugin` or `legacy`"),
    (
        "effective agent",
        (
            "the agent as which the daemon runs a request: from `agentId`, a header, or a key of the form"
            " `agent:<id>:…`; which of them counts differs by operation"
        ),
    ),
    ("t0, t1", "when an exchange began and ended, in seconds"),
    ("cut body", "a body too large for the recording, of which it holds the size and the hash"),
    ("face", "what the kit knows of one release of a harness, by which it plays that harness"),
    (
        "driven run, step marks",
        "a run in which the kit drives the connector, and the lines of its recordings that say what the user did",
    ),
)
"""Terms of the requirements' sentences, subjects and verdicts."""


def read_json(name: str) -> Any:
    """Return a JSON file of schemas/."""
    return json.loads((SCHEMAS / name).read_bytes())


def areas() -> list[dict[str, Any]]:
    """The files of schemas/requirements in the order of their areas; each entry has the area and side of its file."""
    files = [read_json(f"requirements/{file.name}") for file in (SCHEMAS / "requirements").glob("*.json")]
    for area in files:
        area["requirements"] = [{**entry, "area": area["area"], "side": area["side"]} for entry in area["requirements"]]
    return sorted(files, key=lambda area: int(area["place"]))


def catalogue() -> list[dict[str, Any]]:
    """The entries of all areas; those on the daemon's side come last."""
    return [entry for area in areas() for entry in area["requirements"]]


def index() -> str:
    """The index of all requirements."""
    lines = [
        "# Requirements",
        "",
        "<!-- Written by ci/tools/requirement_pages.py from schemas/requirements; a test compares them. -->",
        "",
        "Read this to look up what the contract requires. Each requirement is one sentence with a level: a broken MUST",
        "fails, a broken SHOULD warns. On the built site every id links to its page; `signet-conformance explain ID`",
        "shows the same. [The terms](#terms) are explained below the tables.",
    ]
    for area in areas():
        lines += ["", f"## {area['heading']}", "", "| id | level | sentence |", "|---|---|---|"]
        lines += [f"| `{entry['id']}` | {_level(entry)} | {_plain(entry['title'])} |" for entry in area["requirements"]]
    lines += ["", "## Terms", "", "| term | meaning |", "|---|---|"]
    lines += [f"| {term} | {meaning} |" for term, meaning in TERMS]
    return "\n".join(lines) + "\n"


def page(entry: Mapping[str, Any]) -> str:
    """The page of one requirement, in Markdown."""
    return "\n".join(_page(entry)) + "\n"


def _page(entry: Mapping[str, Any]) -> Iterator[str]:
    name = entry["id"]
    yield from (f"# {name}", "", f"**{_plain(entry['title'])}.**", "")
    head, *facts = (f"| {label} | {text} |" for label, text in _facts(entry))
    yield from (head, "|---|---|", *facts)
    breach = "FAIL" if entry["level"] == "MUST" else "WARN"
    general = f"PASS when each subject meets the sentence, else {breach}. NOT-APPLICABLE when there is no subject."
    yield from _section("Verdict", general)
    if entry["verdict"]:
        yield ""
        yield from (f"- {_plain(sentence)}" for sentence in sentences(entry["verdict"]))
    if entry["undecided"]:
        yield from ("", f"INCONCLUSIVE: {_plain(entry['undecided'])}")
    yield from _section("Why it matters", _plain(entry["why"]))
    yield from _section("What to change", _plain(entry["fix"]))
    if "example" in entry:
        yield from _section("A recording that breaches it", "")
        if "example_context" in entry:
            yield from ("The recording declares:", "", *_json(entry["example_context"]), "")
        yield from _json(entry["example"])
    if "check" in entry:
        file = f"schemas/requirements/{name.split('-')[1]}.json"
        yield from _section("The check", f"JSON Schema over the request, from `{file}`:")
        yield from ("", *_json(entry["check"]))
    yield from _mutants(entry)
    only = f" -k {name}" if entry["side"] == "connector" else ""
    yield from _section("In a terminal", "")
    yield from ("```text", f"signet-conformance explain {name}", f"signet-conformance check TRACE{only}", "```")


def _facts(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "level", _level(entry)
    yield "subject", _plain(entry["subject"])
    operations = ", ".join(f"`{name}`" for name in entry["operations"])
    yield "operations", operations or "any"
    yield "since", f"daemon {entry['since']}" if entry["since"] else "every daemon"
    if entry.get("since_note"):
        yield "about that", _plain(entry["since_note"])
    yield "in force", _in_force(entry)
    yield "decided by", _APART.get(entry["side"]) or _DECIDED[entry["decides"]]
    yield "source", _plain(entry["source"])


def _in_force(entry: Mapping[str, Any]) -> str:
    """Say which frozen versions name a requirement. It is in force if the newest version does."""
    if entry["side"] != "connector":
        return "in every contract version"
    versions = [read_json(f"versions/{path.name}") for path in (SCHEMAS / "versions").glob("*.json")]
    versions.sort(key=lambda frozen: [int(part) for part in frozen["version"].split(".")])
    named = [frozen["version"] for frozen in versions if entry["id"] in frozen["requirements"]]
    if not named:
        return "in no frozen version"
    held = f"in contract {', '.join(named)}"
    return held if named[-1] == versions[-1]["version"] else f"{held}; until then"


def _level(entry: Mapping[str, Any]) -> str:
    later = (f"{level} from daemon {version}" for version, level in entry.get("level_from", {}).items())
    return ", ".join([entry["level"], *later])


def _mutants(entry: Mapping[str, Any]) -> Iterator[str]:
    name = entry["id"]
    breaking = [mutant for mutant in read_json("mutants.json")["mutants"] if mutant["breaks"] == name]
    yield from _section("Proven by", "")
    if not breaking:
        yield _plain(entry.get("no_mutant", "No mutant."))
        return
    yield f"`signet-conformance selftest --only {name}` breaks the reference in these ways, and the kit must notice:"
    yield ""
    for mutant in breaking:
        yield f"- `{mutant['id']}`: the {mutant['side']} {_plain(mutant['title'])} ({mutant['verdict']})"
    if sparing := [variant for variant in read_json("variants.json")["variants"] if name in variant["rows"]]:
        yield from ("", "Odd but conforming, and not blamed:", "")
        yield from (f"- `{variant['id']}`: it {_plain(variant['title'])}" for variant in sparing)


def _section(heading: str, text: str) -> Iterator[str]:
    yield from ("", f"## {heading}", "")
    if text:
        yield text


def _json(value: object) -> Sequence[str]:
    return ("```json", *json.dumps(value, indent=2, ensure_ascii=False).split("\n"), "```")


def _plain(text: str) -> str:
    """Text of the catalogue with its Markdown characters escaped."""
    return re.sub(r"([\\*_`\[\]|])", r"\\\1", html.escape(text, quote=False)).replace("\n", " ")


def variant_list() -> str:
    """The variants of the self-test, each with the reason why it conforms."""
    mutants, variants = read_json("mutants.json")["mutants"], read_json("variants.json")["variants"]
    lines = [
        "# Odd connectors that conform",
        "",
        "<!-- Written by ci/tools/requirement_pages.py from schemas/variants.json; a test compares them. -->",
        "",
        "`signet-conformance selftest` drives each and blames none: see [the self-test](../../docs/self-test.md).",
        "",
        f"{len(mutants)} mutants, {len(variants)} variants.",
        "",
        "| variant | it … | why it conforms |",
        "|---|---|---|",
        *(f"| `{row['id']}` | {_plain(row['title'])} | {_plain(row['because'])} |" for row in variants),
    ]
    return "\n".join(lines) + "\n"


def with_items(page: Path) -> str:
    """The text of a page that shows a pytest run, with the present number of requirements as its number of items."""
    areas = [read_json(f"requirements/{file.name}") for file in (SCHEMAS / "requirements").glob("*.json")]
    count = sum(len(area["requirements"]) for area in areas if area["side"] == "connector")
    return re.sub(r"(?m)^collected \d+ items$", f"collected {count} items", page.read_text("utf-8"))


def main(arguments: list[str] | None = None) -> int:
    """Write the files made from schemas/, or check them, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not current")
    check = parser.parse_args(arguments).check
    shown = tuple((page, with_items(page)) for page in PYTEST_RUNS)
    for file, text in ((INDEX, index()), (VARIANTS, variant_list()), *shown):
        if (file.read_text("utf-8") if file.exists() else "") == text:
            continue
        if check:
            print(f"{file.name} is not what schemas/ says\ntry: python ci/tools/requirement_pages.py", file=sys.stderr)
            return 1
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        print(f"wrote {file.relative_to(SCHEMAS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
