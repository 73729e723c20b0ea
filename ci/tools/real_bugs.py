"""Drive connectors before and after the fixes of real bugs, and compare the reports, for docs/real-bugs.md.

Each entry of real_bugs.json names a fix; the tool drives this commit and the one before it. `"installer": "yes"` also
builds and runs the installer of a plugin; `"as_built": "yes"` leaves the daemon's address in the built program as it
is. The tool exports the trees and builds them with bun (npm install bun@1), which takes seconds to minutes each. It
does not build a tree again whose file .built names the target. It judges both commits by the contract nearest to the
release.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAIRS = Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "real-bugs.md"
MARK = "<!-- What follows is written by ci/tools/real_bugs.py. -->\n"
BUILT = ".built"
TIMEOUT_S = 900
CONTRACTS = (((0, 123, 15), "0.145"), ((0, 85), "0.109"), ((0,), "0.58"))
"""The first release that each contract judges, newest first."""
TOP = ("package.json", "platform", "libs", "integrations", "surfaces", "packages", "scripts", "skills", "tsconfig.json")
LEFT_OUT = {
    "dashboard", "desktop", "tray", "predictor", "signetai", "daemon-rs", "extension-browser", "native",
    "packages/extension", "packages/forge",
}  # fmt: skip
"""Packages that take long to install and that no connector needs."""
CORE = (("platform/core", "packages/core"),)
SDK = (("libs/sdk", "packages/sdk"),)
BASE = ("libs/connector-base", "packages/connector-base")
PLUGINS = {
    "openclaw": (
        *SDK,
        ("integrations/openclaw/memory-adapter", "packages/adapters/openclaw", "packages/adapter-openclaw"),
    ),
    "opencode": (("integrations/opencode/plugin", "packages/opencode-plugin"),),
    "pi": (("integrations/pi/extension", "packages/pi-extension"),),
    "oh-my-pi": (("integrations/oh-my-pi/extension", "packages/oh-my-pi-extension"),),
    "hermes-agent": (),
    "mcp": (),
    "sdk": SDK,
}
CONNECTORS = ("claude-code", "codex", "forge", "gemini", "hermes-agent", "openclaw", "opencode", "pi", "oh-my-pi")
MOVED = {
    "pi": ("packages/pi-extension", "integrations/pi/extension"),
    "oh-my-pi": ("packages/oh-my-pi-extension", "integrations/oh-my-pi/extension"),
    "hermes-agent": ("packages/connector-hermes-agent", "integrations/hermes-agent/connector"),
}
"""Where old releases keep a connector, and where the kit looks for it."""
ADDRESS = re.compile(r"(?<!\|\|)`(http://(?:localhost|\$\{host\}|127\.0\.0\.1):\$\{\w+\})")
"""The daemon's address in the command of old releases, which ignores the environment."""


def git(clone: str, *words: str) -> bytes:
    """The output of a git command in the clone."""
    folder = Path(clone, ".git") if Path(clone, ".git").exists() else Path(clone)
    return subprocess.run(
        [shutil.which("git") or "git", f"--git-dir={folder}", *words], check=True, capture_output=True
    ).stdout


def tree_of(
    clone: str, commit: str, target: str, trees: Path, *, installer: bool = False, as_built: bool = False
) -> Path:
    """Export and build the tree of a commit, with the plugin's installer if wanted, and adapted unless `as_built`.

    Raises CalledProcessError if it cannot be built.
    """
    tree = trees / (f"{commit}-as-built" if as_built else commit)
    build = f"{target}+installer" if installer else target
    if (tree / BUILT).exists() and build in (tree / BUILT).read_text("utf-8").split():
        return tree
    if not tree.exists():
        names = git(clone, "ls-tree", "--name-only", commit).decode().split()
        packed = git(clone, "archive", commit, *(name for name in names if name in TOP or name.startswith("tsconfig.")))
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(tree, filter="tar")
        _trim(tree)
        (tree / "bun.lock").unlink(missing_ok=True)
        _run(tree, "bun", "install", "--ignore-scripts")
    for package in _packages(tree, target, installer=installer):
        script = "build:cli" if package.endswith("/cli") else "build"
        _run(tree / package, "bun", "run", script)
    if not as_built:
        _adapt(tree, target)
    with (tree / BUILT).open("a", encoding="utf-8") as built:
        built.write(f"{build}\n")
    return tree


def _run(folder: Path, *command: str) -> None:
    with (folder / ".build.log").open("wb") as log:
        subprocess.run(command, cwd=folder, check=True, stdout=log, stderr=log, timeout=TIMEOUT_S)


def _trim(tree: Path) -> None:
    """Keep only the workspaces that connectors need, and the dependencies that they have."""
    root = tree / "package.json"
    manifest = json.loads(root.read_text("utf-8"))
    folders = [
        *tree.glob("platform/*"),
        *tree.glob("libs/*"),
        *tree.glob("packages/*"),
        *tree.glob("packages/adapters/*"),
    ]
    folders += [*tree.glob("integrations/*/*"), tree / "surfaces" / "cli"]
    kept = [
        each
        for each in folders
        if (each / "package.json").is_file() and LEFT_OUT.isdisjoint((each.name, str(each.relative_to(tree))))
    ]
    manifest["workspaces"] = [str(each.relative_to(tree)) for each in kept]
    manifest["devDependencies"] = {
        name: version
        for name, version in manifest.get("devDependencies", {}).items()
        if "turbo" not in name and "biome" not in name
    }
    root.write_text(json.dumps(manifest, indent=1), "utf-8")
    have = {json.loads((each / "package.json").read_text("utf-8"))["name"] for each in kept}
    for each in kept:
        file = each / "package.json"
        package = json.loads(file.read_text("utf-8"))
        for kind in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
            wanted = package.get(kind, {})
            package[kind] = {
                name: version
                for name, version in wanted.items()
                if not str(version).startswith("workspace:") or name in have
            }
        for name, script in package.get("scripts", {}).items():
            # Leave out the declarations of types, which are not needed and fail to build.
            package["scripts"][name] = re.sub(
                r"\s*&&\s*(bun run build:types|tsc [^&]*emitDeclarationOnly[^&]*)", "", script
            )
        file.write_text(json.dumps(package, indent=1), "utf-8")


def _packages(tree: Path, target: str, *, installer: bool) -> Iterator[str]:
    """The packages to build for a target, in their order."""
    wanted = [*CORE, *PLUGINS.get(target, ())]
    if installer:
        wanted += [BASE, (f"integrations/{target}/connector", f"packages/connector-{target}")]
    if target not in PLUGINS:
        wanted += [BASE]
        wanted += [PLUGINS[name][-1] for name in ("opencode", "pi", "oh-my-pi")]
        wanted += [(f"integrations/{name}/connector", f"packages/connector-{name}") for name in CONNECTORS]
        wanted += [("surfaces/cli", "packages/cli")]
    for places in wanted:
        there = next((place for place in places if (tree / place / "package.json").is_file()), None)
        if there is not None:
            yield there


def _adapt(tree: Path, target: str) -> None:
    """Make old releases drivable: the daemon's address from the environment, connectors where the kit looks."""
    for program in (*tree.glob("packages/cli/dist/cli.js"), *tree.glob("surfaces/cli/dist/cli.js")):
        text = program.read_text("utf-8")
        adapted = ADDRESS.sub(lambda match: f"`${{process.env.SIGNET_DAEMON_URL||`{match[1]}`}}", text)
        program.write_text(adapted, "utf-8")
    if target in MOVED:
        old, new = (tree / place for place in MOVED[target])
        if old.is_dir() and not new.exists():
            new.parent.mkdir(parents=True, exist_ok=True)
            new.symlink_to(old)


def drive(tree: Path, target: str, release: str, report: Path, scenarios: Sequence[str]) -> Mapping[str, Any]:
    """Drive a connector and return its report. Raises OSError if nothing was driven."""
    numbers = tuple(map(int, release.split(".")))
    contract = next(version for least, version in CONTRACTS if numbers >= least)
    kit = [sys.executable, "-m", "signet_conformance.cli", "run", target, "--contract", contract, "--quiet"]
    shutil.rmtree(report, ignore_errors=True)
    words = [*kit, "--report", str(report), *scenarios]
    subprocess.run(words, cwd=tree, check=False, capture_output=True, timeout=TIMEOUT_S)
    file = report / "report.json"
    document: Mapping[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    if not document.get("traces"):
        raise OSError(f"nothing was driven in {tree.name}")
    return document


def breaches(report: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """The message of each breach by requirement and kind, also of the model's side and of the next contract."""
    found: dict[tuple[str, str], str] = {}
    sides = [report.get("together", {})]
    sides += [(trace.get("model") or {}).get("verdicts", {}) for trace in report.get("traces", ())]
    for name, row in ((name, row) for verdicts in sides for name, row in verdicts.items()):
        if row["verdict"] in ("FAIL", "WARN"):
            for finding in row["findings"]:
                kind = finding.get("fold") or finding["message"]
                # A fix may concern only some of the listed elements.
                for element in finding.get("elements") or ("",):
                    found.setdefault((name, f"{kind} {element}".strip()), _full_message(name, finding))
    newer = report.get("newer") or {"breaches": {}}
    for name, row in newer["breaches"].items():
        found.setdefault((name, "next contract"), f"would breach {newer['contract']}: {row['message']}")
    return found


def _full_message(name: str, finding: Mapping[str, Any]) -> str:
    """The message as a terminal shows it, with the error of a handler that failed."""
    message, received = str(finding["message"]), finding.get("received")
    is_complete = name != "SIG-LOAD-001" or not isinstance(received, str) or received in message
    return message if is_complete else f'{message} ("{received}")'


def judge(
    pair: Mapping[str, Any], clone: str, trees: Path, reports: Path, scenarios: Sequence[str]
) -> Mapping[str, Any]:
    """Drive both commits of a pair, and return the breaches of the first that the second does not have."""
    driven = []
    for name in (f"{pair['fix']}^", pair["fix"]):
        commit = git(clone, "rev-parse", "--short=9", name).decode().strip()
        try:
            ways = {name: pair.get(name) == "yes" for name in ("installer", "as_built")}
            tree = tree_of(clone, commit, pair["target"], trees, **ways)
            report = drive(tree, pair["target"], pair["release"], reports / f"{commit}-{pair['target']}", scenarios)
        except (subprocess.SubprocessError, OSError) as failure:
            reason = str(failure) if isinstance(failure, OSError) else type(failure).__name__
            return {**pair, "failed": f"not driven: {commit}: {reason}"}
        driven.append((report, breaches(report)))
    (before, broken), (after, fixed) = driven
    gone = {key: message for key, message in broken.items() if key not in fixed}
    # Breaches of loading come first, since they cause others, and those of coverage last, since they are effects. If
    # the fix breaches the requirement too, perhaps only names in the message changed.
    still = {name for name, _ in fixed}
    gone = dict(
        sorted(gone.items(), key=lambda each: (each[0][0] in still, "LOAD" not in each[0][0], "COV" in each[0][0]))
    )
    reachable = sorted(set(_unreachable(before)) - set(_unreachable(after)))
    rows = dict.fromkeys((name, message) for (name, _), message in gone.items())
    return {**pair, "gone": [*map(list, rows)], "reachable": reachable}


def _unreachable(report: Mapping[str, Any]) -> Iterator[str]:
    unreached = report.get("unreached") or {"tools": (), "fields": {}}
    for part in (unreached, unreached.get("later") or {"tools": (), "fields": {}}):
        yield from part["tools"]
        yield from (f"{field} of {tool}" for tool, fields in part["fields"].items() for field in fields)


def table(rows: Sequence[Mapping[str, Any]], before: str = "") -> str:
    """The table of the page, with the rows of `before` for pairs that were not driven again."""
    kept = {tuple(line.split(" | ")[:2]): line for line in before.splitlines() if re.match(r"\| [0-9a-f]{9} ", line)}
    for row in rows:
        line = f"| {row['fix']} | {row['target']} | {row['release']} | {_cell(row['wrong'])} | {_report_cell(row)} |"
        kept[tuple(line.split(" | ")[:2])] = line
    nothing = sum(bool(_UNREPORTED.search(line)) for line in kept.values())
    head = [
        "| fix | target | release | what was wrong | what the kit says before, and not after |",
        "|---|---|---|---|---|",
    ]
    return f"The kit reports {len(kept) - nothing} of {len(kept)} bugs.\n\n" + "\n".join([*head, *kept.values()]) + "\n"


_NOTHING = "nothing"
_UNREPORTED = re.compile(r"\| (?:nothing|not driven)(?:: [^|]*)? \|$")
_FOLDERS = re.compile(r"(?<![\w.:/])(?:/[\w.@+-]+){2,}/")
"""The folders in a path of this machine."""
_IDS = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""Ids that differ from run to run."""


def _report_cell(row: Mapping[str, Any]) -> str:
    if row.get("failed"):
        return _cell(row["failed"])
    lines = [
        f"`{name}` {_cell(_IDS.sub('(an id)', _FOLDERS.sub('…/', message)))}" for name, message in row.get("gone", ())
    ]
    parts = list(dict.fromkeys(lines))[:3]
    # For a bug that the kit cannot report, what else became reachable does not matter.
    if row.get("reachable") and "untold" not in row:
        parts.append(f"became reachable: {', '.join(row['reachable'][:6])}")
    return "; ".join(parts) or (f"{_NOTHING}: {row['untold']}" if "untold" in row else _NOTHING)


def _cell(text: str) -> str:
    shown = text if len(text) < 200 else f"{text[:199]}…"
    return shown.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def main() -> int:
    """Drive the pairs and print the differences; with --write, renew the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", help="a clone of Signet's repository with its history, bare or not")
    parser.add_argument(
        "--trees", type=Path, help="the folder in which to build and keep trees (default: a temporary folder)"
    )
    jobs = "how many pairs at a time (default: 1; a busy machine leaves verdicts that depend on time undecided)"
    parser.add_argument("--jobs", type=int, default=1, help=jobs)
    parser.add_argument("--only", nargs="*", default=(), help="fixes, or FIX:TARGET")
    parser.add_argument("--scenario", help="perform the scenarios of this file instead of the scripted ones")
    parser.add_argument("--write", action="store_true", help="renew the table of docs/real-bugs.md")
    options = parser.parse_args()
    known = json.loads(PAIRS.read_text("utf-8"))
    pairs = [
        pair
        for pair in known
        if not options.only or {pair["fix"], f"{pair['fix']}:{pair['target']}"} & set(options.only)
    ]
    with tempfile.TemporaryDirectory(dir=os.environ.get("SIGNET_SCRATCH")) as name:
        trees = options.trees or Path(name, "trees")
        trees.mkdir(parents=True, exist_ok=True)
        rows = []
        with ThreadPoolExecutor(options.jobs) as pool:
            scenarios = (
                ["--scenario", str(Path(options.scenario).resolve())] if options.scenario else ["--scenarios", "0"]
            )
            for row in pool.map(
                lambda pair: judge(pair, options.clone, trees.resolve(), Path(name, "reports"), scenarios), pairs
            ):
                rows.append(row)
                print(f"{row['fix']} {row['target']}: {_report_cell(row)[:300]}", flush=True)
    head, _, before = PAGE.read_text("utf-8").partition(MARK)
    text = table(rows, before)
    if options.write:
        PAGE.write_text(head + MARK + "\n" + text, "utf-8")
    print(text.splitlines()[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
