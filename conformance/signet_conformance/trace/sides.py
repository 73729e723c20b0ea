"""Which files make up a recording: NAME.jsonl, and NAME.model.jsonl where a model server was recorded too."""

from __future__ import annotations

from pathlib import Path

SUFFIX = ".jsonl"
MODEL = "model"
"""The `side` of a recording that was made in front of a model server."""
MODEL_SUFFIX = f".{MODEL}{SUFFIX}"


def recordings_in(folder: Path) -> list[Path]:
    """The recordings in a folder, sorted; what stands beside one is not one of its own."""
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if not is_model_side(path.name))


def is_model_side(name: str) -> bool:
    """Whether a file of that name is the model's side of another."""
    return name.endswith(MODEL_SUFFIX)


def model_side(path: str) -> str | None:
    """Where the model's side of the recording `path` stands, if there is any; None for a name that has none."""
    if not path.endswith(SUFFIX) or is_model_side(path):
        return None
    return path.removesuffix(SUFFIX) + MODEL_SUFFIX
