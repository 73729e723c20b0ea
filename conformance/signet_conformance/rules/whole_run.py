"""The traces of one run together, as a rule over runs reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from signet_conformance.contract import routes_of
from signet_conformance.errors import printable
from signet_conformance.facts import LIFECYCLE
from signet_conformance.trace import Declared, Trace
from signet_conformance.trace.marks import LoadedMark, RefusedMark, RemarkMark, ScenarioEndMark, StrayMark, marks_of

_MOST_ORIGINS = 3


class WholeRun(Struct, frozen=True):
    """The traces of one run, at least one, with the daemon version that they are judged by."""

    traces: Sequence[Trace]
    daemon_version: str

    @property
    def declared(self) -> Declared:
        """What the target says of itself; every trace of a run repeats it."""
        return self.traces[0].header.declared

    @property
    def is_complete(self) -> bool:
        """Whether several scenarios were performed, each to its end, and none was picked out as a part of a run."""
        return len(self.traces) > 1 and all(map(_is_whole, self.traces))

    def causes_of(self, absent: Collection[str]) -> Sequence[str]:
        """Why some operations were never seen, as far as the driver knows.

        What keeps a harness from running any hook is the cause of nothing in a run in which hooks were seen; there only
        a remark counts that names one of the operations.
        """
        told = dict.fromkeys(refusals(self.traces))
        silent = LIFECYCLE.isdisjoint(self.operations)
        for trace in self.traces:
            strays = (mark.address for mark in marks_of(trace, StrayMark))
            told.update(dict.fromkeys(f"requests went to {address} instead (SIG-LOAD-003)" for address in strays))
            remarks = (str(mark.text) for mark in marks_of(trace, RemarkMark) if mark.text and mark.unheard)
            told.update(dict.fromkeys(text for text in remarks if silent or any(name in text for name in absent)))
            unloaded = (m.words for m in marks_of(trace, LoadedMark) if silent and m.ok is False and m.words)
            told.update(dict.fromkeys(unloaded))
        return list(told)

    def serves(self, operation: str) -> bool:
        """Whether the daemon of the run may serve an operation."""
        return operation in routes_of(self.daemon_version).operations

    @property
    def operations(self) -> frozenset[str]:
        """The operations that the connector called in any of the traces."""
        routes = routes_of(self.daemon_version)
        handled = (each for trace in self.traces for each in trace.exchanges if not each.is_unhandled)
        served = (routes.find(exchange.request.method, exchange.request.path) for exchange in handled)
        return frozenset(route.operation for route in served if route is not None and route.operation is not None)


def refusals(traces: Iterable[Trace], *, counted: bool = True) -> Iterator[str]:
    """That the recorder refused requests as a web page's, why, and what to do; nothing where it refused none.

    Not `counted`, it says the same of each trace that shows the same.
    """
    refused = Counter(mark.by for trace in traces for mark in marks_of(trace, RefusedMark))
    if not refused:
        return
    count = refused.total()
    shown = ", ".join(printable(origin, 60) for origin, _ in refused.most_common(_MOST_ORIGINS))
    more = len(refused) - _MOST_ORIGINS
    which = "requests were" if not counted else "1 request was" if count == 1 else f"{count} requests were"
    yield (
        f"{which} refused (403) as a web page's (Origin: {shown}{f' and {more} more' if more > 0 else ''}):"
        " send no Origin header and no Sec-Fetch-Site"
    )


def _is_whole(trace: Trace) -> bool:
    ends = marks_of(trace, ScenarioEndMark)
    return not trace.part and any(end.error is None and not end.part for end in ends)
