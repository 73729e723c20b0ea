"""Whether a path that was sent is the folder that the user works in."""

from __future__ import annotations

import posixpath

_REAL_ROOT = "/private"
"""What macOS puts before the resolved paths below /tmp, /var and /etc."""


def is_folder(sent: str, folder: str) -> bool:
    """Whether a path names a folder, resolved or with a slash at its end; other letters name another one."""
    told, wanted = _normal(sent), _normal(folder)
    return told == wanted or told == _REAL_ROOT + wanted or wanted == _REAL_ROOT + told


def _normal(path: str) -> str:
    return posixpath.normpath(path.strip().replace("\\", "/"))
