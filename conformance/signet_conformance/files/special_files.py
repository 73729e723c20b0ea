"""Pipes, devices and sockets: reading one may never end."""

from __future__ import annotations

import stat
from pathlib import Path

_OPENED = ("/dev/fd/", "/proc/self/fd/")


def is_special(path: str) -> bool:
    """Whether a path names a pipe, a device or a socket: reading one may wait for ever.

    A pipe that a shell opened for us, `<(zcat FILE)`, has its writer already.
    """
    if path.startswith(_OPENED):
        return False
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
