"""A trace is one header, then exchanges and marks: `signet-trace/1`, one JSON object per line.

Everything here is frozen and knows neither proxies nor rules. Times are seconds since the header's
`created`, from a monotonic clock. Nothing in a trace is trusted: lines are bounded, shapes are
checked, and every complaint names file, line and remedy.
"""

from signet_conformance.trace.model import (
    BOUNDS as BOUNDS,
    FORMAT as FORMAT,
    GIVEN_CREDENTIAL as GIVEN_CREDENTIAL,
    RELEASES as RELEASES,
    Body as Body,
    Declared as Declared,
    Exchange as Exchange,
    Gap as Gap,
    Header as Header,
    Mark as Mark,
    Message as Message,
    Request as Request,
    Response as Response,
    Trace as Trace,
    encode as encode,
)
from signet_conformance.trace.reading import read as read, read_ahead as read_ahead
