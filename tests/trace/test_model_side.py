"""A recording may have two sides: the daemon's, and beside it the model's."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance.cli.recordings import read_recording, trace_files
from signet_conformance.errors import TraceError
from signet_conformance.facts import Recording
from signet_conformance.trace import Header, encode, read
from signet_conformance.trace.recordings import recordings_in

MARK = encode({"kind": "mark", "seq": 1, "t": 2.5, "name": "step", "data": {"step": "prompt", "index": 0}})


def _written(folder: Path, model: Header, daemon: Header) -> Path:
    (folder / "a.model.jsonl").write_bytes(encode(model.to_json()) + MARK)
    (folder / "a.jsonl").write_bytes(encode(daemon.to_json()) + MARK)
    return folder / "a.jsonl"


def test_the_model_s_side_is_read_with_the_recording(tmp_path: Path) -> None:
    """NAME.model.jsonl is the `model` of NAME.jsonl, and its times can be told in the time of the other."""
    read_both = read(_written(tmp_path, Header(side="model", clock_s=101.0), Header(clock_s=100.0)))
    model = Recording(read_both).model
    assert model is not None
    assert model.header.side == "model"
    assert read_both.instant(model, model.marks[0].t) == 3.5
    assert read(tmp_path / "a.model.jsonl").model is None


def test_a_recording_alone_has_no_model(tmp_path: Path) -> None:
    """Where no model was recorded there is none."""
    (tmp_path / "a.jsonl").write_bytes(encode(Header().to_json()))
    assert Recording(read(tmp_path / "a.jsonl")).model is None


def test_a_folder_holds_each_recording_once(tmp_path: Path) -> None:
    """The model's side is never a recording of its own, in a folder or by its name."""
    daemon = _written(tmp_path, Header(side="model", clock_s=1.0), Header(clock_s=1.0))
    assert recordings_in(tmp_path) == [daemon]
    assert list(trace_files([str(tmp_path)]).files) == [str(daemon)]
    assert list(trace_files([f"{tmp_path}/*.jsonl"]).files) == [str(daemon)]
    model = tmp_path / "a.model.jsonl"
    assert list(trace_files([str(daemon), str(model)]).files) == [str(daemon)]
    assert list(trace_files([str(model)]).files) == [str(model)]
    with pytest.raises(TraceError, match="is one side of a recording"):
        read_recording(str(tmp_path / "a.model.jsonl"))


@pytest.mark.parametrize(
    ("model", "daemon"),
    [
        (Header(clock_s=1.0), Header(clock_s=1.0)),
        (Header(side="model"), Header(clock_s=1.0)),
        (Header(side="model", clock_s=1.0), Header()),
    ],
    ids=["of no side", "without a clock", "beside one without a clock"],
)
def test_sides_that_cannot_be_compared_are_refused(tmp_path: Path, model: Header, daemon: Header) -> None:
    """A file that only has the name of a model's side is an error, with what to do."""
    with pytest.raises(TraceError, match="cannot be read together") as caught:
        read(_written(tmp_path, model, daemon))
    assert caught.value.remedy
