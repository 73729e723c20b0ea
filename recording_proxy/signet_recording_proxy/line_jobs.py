"""Messages between the recorder and the process that makes lines: pickles, each after its length."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Mapping, Sequence

from msgspec import Struct

from signet_recording_proxy.exchange_line import EndedExchange
from signet_recording_proxy.redaction.redactor import Learned

LENGTH = struct.Struct(">Q")


class LineJob(Struct):
    """An exchange whose line is to be made, and what the recorder has learned of secrets since the job before."""

    number: int
    exchange: EndedExchange
    canaries: Mapping[str, str]
    secrets: Sequence[str]
    learned: Sequence[Learned]


class Made(Struct):
    """The line of a job, in which new `secrets` have provisional tokens; or the failure to make one."""

    number: int
    line: bytes = b""
    secrets: Sequence[str] = ()
    failure: str | None = None


def pack(message: LineJob | Made) -> bytes:
    """A message as it is sent."""
    data = pickle.dumps(message, protocol=5)
    return LENGTH.pack(len(data)) + data
