"""JSON files that people name: read, or refused in one line with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance.errors import TargetError, UsageError
from signet_conformance.files import parse_file, read_json


def test_the_value_of_a_file(tmp_path: Path) -> None:
    """What stands in the file comes back, as large as the bound allows."""
    path = tmp_path / "a.json"
    path.write_text('{"a": [1, null, "é", "\\ud83d"]}', encoding="utf-8")
    assert read_json(path, "mend it", most_bytes=path.stat().st_size) == {"a": [1, None, "é", "\ud83d"]}
    with pytest.raises(UsageError, match="is larger than"):
        read_json(path, "mend it", most_bytes=path.stat().st_size - 1)


@pytest.mark.parametrize("text", [b"", b"{", b"nul", b"\xff\xfe", b"[" * 99_999, b"{}x"])
def test_what_is_no_json_is_refused(text: bytes, tmp_path: Path) -> None:
    """The error has the file, what the parser says, and the remedy; its kind is the caller's."""
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(TargetError, match="is not JSON") as caught:
        read_json(path, "mend it", error=TargetError)
    assert (caught.value.where, caught.value.remedy) == (str(path), "mend it")


def test_a_recording_in_place_of_one_value_is_called_what_it_is(tmp_path: Path) -> None:
    """It is JSON, a value a line: "no JSON" would send the reader to look for a comma."""
    path = tmp_path / "run.jsonl"
    path.write_text('{"a": 1}\n{"b": 2}\n', encoding="utf-8")
    with pytest.raises(UsageError, match="holds several JSON values, one on each line, as a recording does"):
        read_json(path, "mend it")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a device that never ends")
def test_a_file_that_never_ends_is_refused() -> None:
    """A device tells no size beforehand, so nothing of it is read: up to the bound it would take half a minute."""
    with pytest.raises(UsageError, match="cannot be read: it is a device"):
        read_json("/dev/zero", "mend it")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '\ufeff{"a": 2}'])
def test_oddities_of_json_are_read(text: str, tmp_path: Path) -> None:
    """Of a name that stands twice the last value counts, and a byte order mark is passed over."""
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    assert read_json(tmp_path / "a.json", "mend it") == {"a": 2}


@pytest.mark.parametrize("name", ["gone.json", ".", "a\0b", "x" * 9999])
def test_what_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    """A folder, a name that no file can have and a file that is not there end alike."""
    with pytest.raises(UsageError, match="cannot be read") as caught:
        read_json(tmp_path / name, "mend it", where="--option")
    assert caught.value.where == "--option"


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", '\ufeff{"a": 2}'), ("a.toml", "a = 2\r\n"), ("settings", '{"a": 2}')]
)
def test_a_file_is_parsed_by_its_suffix(name: str, text: str, tmp_path: Path) -> None:
    """A file is JSON unless it is called TOML, and no larger than the bound allows."""
    path = tmp_path / name
    path.write_bytes(text.encode())
    assert parse_file(path) == {"a": 2}
    with pytest.raises(ValueError, match="is larger than 3 bytes"):
        parse_file(path, 3)
