"""Facts about the lane's inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance.errors import UsageError
from signet_conformance.github_action import options
from signet_conformance.github_action.inputs import FIELDS, Inputs, read_inputs, with_new_report


def read(tmp_path: Path, **given: str) -> Inputs:
    """The inputs of an environment with a target and these."""
    names = {f"SIGNET_LANE_{name.upper()}": value for name, value in {"target": "mine", **given}.items()}
    return read_inputs(names, tmp_path)


def test_a_target_is_enough(tmp_path: Path) -> None:
    """Every input but the target has a default."""
    inputs = read_inputs({"SIGNET_LANE_TARGET": "mine"}, tmp_path)
    assert (inputs.target, inputs.daemon, inputs.strict, inputs.report) == (
        "mine",
        "embedded",
        False,
        tmp_path.resolve() / "signet-report",
    )


def test_a_blank_input_is_one_that_was_left_out(tmp_path: Path) -> None:
    """The action passes every input, an absent one as an empty text."""
    blank = {field.variable: "" for field in FIELDS}
    assert read_inputs({**blank, "SIGNET_LANE_TARGET": "mine"}, tmp_path) == read(tmp_path)


def test_the_example_of_each_input_is_one(tmp_path: Path) -> None:
    """The example in an error message is a valid value."""
    (tmp_path / "packages" / "connector").mkdir(parents=True)
    (tmp_path / "packages" / "connector" / "signet-baseline.json").touch()
    read_inputs({field.variable: field.example for field in FIELDS}, tmp_path)


def test_a_target_has_a_number_of_sessions_of_its_own(tmp_path: Path) -> None:
    """The run gets a number of generated sessions only if the lane has one."""
    assert "scenarios" not in options(read(tmp_path))
    assert options(read(tmp_path, scenarios="7"))["scenarios"] == "7"


@pytest.mark.parametrize(
    "daemon",
    [
        "embedded",
        "embedded:0.58",
        "http://127.0.0.1:3850",
        "http://localhost:3850/",
        "http://[::1]:3850",
        "node daemon.mjs --quiet",
    ],
)
def test_daemons_that_may_be_named(tmp_path: Path, daemon: str) -> None:
    """The embedded daemon, one on this machine, or a command of plain words."""
    assert read(tmp_path, daemon=daemon).daemon == daemon


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("target", "mine; id"),
        ("target", "$(id)"),
        ("target", "--help"),
        ("target", "mine\nstatus=0"),
        ("target", "a" * 65),
        ("daemon", "http://203.0.113.9:3850"),
        ("daemon", "http://localhost.example:3850"),
        ("daemon", "sh -c 'id'"),
        ("daemon", "node daemon.mjs | tee log"),
        ("daemon", "node $HOME/daemon.mjs"),
        ("daemon", "-x"),
        ("scenarios", "-1"),
        ("scenarios", "٣"),
        ("seed", "1e9"),
        ("contract", "0.145; id"),
        ("strict", "yes"),
        ("artifact", "a/b"),
        ("artifact", "${{ secrets.TOKEN }}"),
        ("report", "/etc"),
        ("report", "`id`"),
        ("baseline", "known failures.json"),
        ("working_directory", "~root"),
    ],
)
def test_a_value_of_another_shape_is_refused(tmp_path: Path, name: str, value: str) -> None:
    """Text that a shell, a workflow command or an option parser could obey is refused."""
    with pytest.raises(UsageError) as refused:
        read(tmp_path, **{name: value})
    assert refused.value.where == f"SIGNET_LANE_{name.upper()}"
    assert str(refused.value.remedy).startswith("write it like ")


def test_what_an_input_is_stands_in_its_refusal(tmp_path: Path) -> None:
    """The message is a sentence that describes the input in the words of the help."""
    with pytest.raises(UsageError) as refused:
        read(tmp_path, strict="maybe")
    assert refused.value.message.startswith("'maybe' does not fit: strict is true if a WARN fails the lane too")


def test_a_missing_target_is_told(tmp_path: Path) -> None:
    """Without a target the remedy lists them."""
    with pytest.raises(UsageError, match="is not set") as refused:
        read_inputs({}, tmp_path)
    assert refused.value.remedy == "name a target: signet-conformance targets"


def test_a_misspelt_variable_is_refused(tmp_path: Path) -> None:
    """A variable that has the lane's prefix but names no input is an error."""
    for name in ("scenario", "zeal"):
        with pytest.raises(UsageError, match="is not an input") as refused:
            read(tmp_path, python="python3", **{name: "5"})
        assert refused.value.where == f"SIGNET_LANE_{name.upper()}"
    read(tmp_path, python="python3")


@pytest.mark.parametrize("name", ["report", "working_directory"])
@pytest.mark.parametrize("value", ["../out", "a/../../out", "link/out"])
def test_a_path_stays_in_the_workspace(tmp_path: Path, name: str, value: str) -> None:
    """Neither dots nor a symbolic link lead out of it."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "link").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="leads out of the workspace"):
        read(workspace, **{name: value})


def test_a_link_to_itself_leads_nowhere(tmp_path: Path) -> None:
    """The lane takes it neither as a folder nor as a baseline, and writes no report to it."""
    (tmp_path / "loop").symlink_to("loop")
    for name, says in (("working_directory", "is not a folder"), ("baseline", "is not a file")):
        with pytest.raises(UsageError, match=says):
            read(tmp_path, **{name: "loop"})
    with pytest.raises(UsageError, match="is there already"):
        with_new_report(read(tmp_path, report="loop"), ci=True)


def test_a_baseline_must_be_there(tmp_path: Path) -> None:
    """A named baseline that does not exist is an error, not an empty one."""
    with pytest.raises(UsageError, match="is not a file"):
        read(tmp_path, baseline="known.json")


def test_an_earlier_report_is_not_taken_for_this_one(tmp_path: Path) -> None:
    """In CI a used report folder, or a file in its place, is refused; an empty folder counts as new."""
    report = tmp_path / "signet-report"
    report.mkdir()
    assert with_new_report(read(tmp_path), ci=True) == read(tmp_path)
    (report / "report.json").write_text("{}")
    with pytest.raises(UsageError, match="is there already") as refused:
        with_new_report(read(tmp_path), ci=True)
    assert str(refused.value.where).startswith("SIGNET_LANE_REPORT ")
    with pytest.raises(UsageError, match="is there already"):
        with_new_report(read(tmp_path, report="signet-report/report.json"), ci=True)


def test_a_second_run_on_a_machine_takes_the_next_name(tmp_path: Path) -> None:
    """Outside CI the report goes into the next free folder beside the previous one."""
    for name in ("signet-report", "signet-report-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text("{}")
    assert with_new_report(read(tmp_path), ci=False).report == tmp_path / "signet-report-3"


def test_paths_start_from_the_working_directory(tmp_path: Path) -> None:
    """Report and baseline are beside the connector's settings."""
    folder = tmp_path / "packages" / "pi"
    folder.mkdir(parents=True)
    inputs = read(tmp_path, working_directory="packages/pi")
    assert inputs.report == folder.resolve() / "signet-report"
