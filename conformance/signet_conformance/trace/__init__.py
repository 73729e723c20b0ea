"""A trace is one header, then exchanges and marks: `signet-trace/1`, one JSON object a line.

Everything here is frozen and knows neither proxies nor rules. Times are seconds since the header's
`created`, from a monotonic clock. Nothing in a trace is trusted: lines are bounded, shapes are
checked, and every complaint names file, line and remedy.
"""

from signet_conformance.trace.model import (
    BOUNDS,
    FORMAT,
    GIVEN_CREDENTIAL,
    RELEASES,
    Body,
    Declared,
    Exchange,
    Gap,
    Header,
    Mark,
    Message,
    Request,
    Response,
    Trace,
    encode,
)
from signet_conformance.trace.reading import read, read_ahead

__all__ = [
    "BOUNDS",
    "FORMAT",
    "GIVEN_CREDENTIAL",
    "RELEASES",
    "Body",
    "Declared",
    "Exchange",
    "Gap",
    "Header",
    "Mark",
    "Message",
    "Request",
    "Response",
    "Trace",
    "encode",
    "read",
    "read_ahead",
]
