"""Which files make up a recording: NAME.jsonl, and NAME.model.jsonl where a model server was recorded too.

Each of them may be packed, and then has the suffix of the packing as well: NAME.jsonl.gz.
"""

from __future__ import annotations

from pathlib import Path

from signet_conformance.trace.opening import PACKINGS

SUFFIX = ".jsonl"
SUFFIXES = (SUFFIX, *(SUFFIX + packing.suffix for packing in PACKINGS))
"""How the name of a recording ends, packed or not."""
MODEL = "model"
"""The `side` of a recording that was made in front of a model server."""
MODEL_SUFFIX = f".{MODEL}{SUFFIX}"


def is_recording(name: str) -> bool:
    """Whether a file of that name is a recording, by its suffix."""
    return name.endswith(SUFFIXES)


def recordings_in(folder: Path) -> list[Path]:
    """The recordings in a folder, sorted; what stands beside one is not one of its own."""
    return sorted(
        path for path in folder.glob(f"*{SUFFIX}*") if is_recording(path.name) and not is_model_side(path.name)
    )


def is_model_side(name: str) -> bool:
    """Whether a file of that name is the model's side of another."""
    stem, suffix = _parted(name)
    return bool(suffix) and stem.endswith(f".{MODEL}")


def model_side(path: str) -> str | None:
    """Where the model's side of the recording `path` stands, if there is any; None for a name that has none."""
    stem, suffix = _parted(path)
    return f"{stem}.{MODEL}{suffix}" if suffix and not is_model_side(path) else None


def daemon_side(path: str) -> str:
    """The recording beside which the model's side `path` stands."""
    stem, suffix = _parted(path)
    return stem.removesuffix(f".{MODEL}") + suffix


def _parted(name: str) -> tuple[str, str]:
    """A name without the suffix of a recording, and that suffix; empty for another name."""
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
    return name[: len(name) - len(suffix)], suffix
