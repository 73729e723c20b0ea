"""The traces of a run in the form that rules over a run read, and why operations are missing, according to marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf

from msgspec import Struct

from signet_conformance.contract.routes import routes_of
from signet_conformance.errors import first_of, printable
from signet_conformance.facts.calls import LIFECYCLE
from signet_conformance.facts.steps import skipped_for
from signet_conformance.trace import Declared, Trace, marks
from signet_conformance.trace.marks import marks_of
from signet_conformance.trace.model import NOT_CARRIED

_MOST_ORIGINS = 3
_DISTURBANCES = (marks.FaultMark.NAME, marks.OutageMark.NAME)


class WholeRun(Struct, frozen=True):
    """The traces of one run, at least one, with the daemon version that they are judged by."""

    traces: Sequence[Trace]
    daemon_version: str

    @property
    def declared(self) -> Declared:
        """The target's declaration, which every trace of a run repeats."""
        return self.traces[0].header.declared

    @property
    def is_complete(self) -> bool:
        """Whether several scenarios were performed, each to its end, and not only a part of a run was chosen."""
        return len(self.traces) > 1 and all(map(_is_whole, self.traces))

    def causes_of(self, absent: Collection[str]) -> Sequence[str]:
        """Why some operations were never seen, as far as the driver knows.

        A remark that explains why a harness runs no hook at all explains nothing in a run with hooks; there, only a
        remark counts that names one of the operations.
        """
        causes = dict.fromkeys(refusals(self.traces))
        silent = LIFECYCLE.isdisjoint(self.operations)
        for trace in self.traces:
            if any(mark.is_on for mark in marks_of(trace, marks.BypassMark)):
                # A connector that its user has switched off may register and call nothing.
                continue
            strays = (mark.address for mark in marks_of(trace, marks.StrayMark))
            causes.update(dict.fromkeys(f"requests went to {address} instead (SIG-LOAD-003)" for address in strays))
            remarks = (str(mark.text) for mark in marks_of(trace, marks.RemarkMark) if mark.text and mark.unheard)
            causes.update(dict.fromkeys(text for text in remarks if silent or any(name in text for name in absent)))
            causes.update(
                dict.fromkeys(f"{m.file}: {m.words} (SIG-LOAD-002)" for m in _refusals_that_block(trace, absent))
            )
            if silent and registers_nothing([*marks_of(trace, marks.RegisteredMark)]):
                causes.setdefault(f"{NOTHING_REGISTERED} (SIG-LOAD-001)")
            unloaded = (m.words for m in marks_of(trace, marks.LoadedMark) if silent and m.ok is False and m.words)
            causes.update(dict.fromkeys(unloaded))
        causes.update(dict.fromkeys(self._misspelt(absent)))
        causes.update(dict.fromkeys(skipped_for(self.traces, absent)))
        return list(causes)

    def _misspelt(self, absent: Collection[str]) -> Iterator[str]:
        """Requests that no route serves and that are similar to one of the operations."""
        routes = routes_of(self.daemon_version)
        sent = ((each.request.method, each.request.path) for trace in self.traces for each in trace.exchanges)
        for method, path in dict.fromkeys(sent):
            near = None if routes.find(method, path) is not None else routes.nearest(method, path)
            if near is not None and near.operation in absent:
                yield f"{method} {printable(path, 80)} was sent in place of {near.method} {near.path} (SIG-HTTP-003)"

    def lost_of(self, absent: Collection[str]) -> Mapping[str, str]:
        """Operations of which a request was sent and none arrived, each with what is known about that.

        On a busy machine a connector may give up before its request is on its way, or the recorder may not carry it. A
        request is not lost if it went to another address, was refused as a web page's, or was left by its own client.
        """
        routes = routes_of(self.daemon_version)
        lost: dict[str, str] = {}
        for trace in self.traces:
            sent = ((*request, "was sent") for request in _sent_requests(trace))
            arrived = (each for each in trace.exchanges if each.error == NOT_CARRIED)
            dropped = ((each.request.method, each.request.path, "was not carried") for each in arrived)
            for method, path, how in (*sent, *dropped):
                route = routes.find(method, path)
                if route is not None and route.operation in absent:
                    lost.setdefault(str(route.operation), f"{method} {printable(path, 80)} {how}")
        return lost

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


def unanswerable(trace: Trace) -> Counter[tuple[str, str]]:
    """Count, by method and path, the requests that the driver saw sent and that no daemon could answer.

    They never arrived, or were a GET /health that its client gave up. What comes after the first fault or outage does
    not count.
    """
    until = min((mark.seq for mark in trace.marks if mark.name in _DISTURBANCES), default=inf)
    sent = Counter(_sent_requests(trace, until))
    if not sent:
        return sent
    arrived = (
        (each.request.method, each.request.path)
        for each in trace.exchanges
        if each.seq < until and (each.request.path != "/health" or each.error != "client_closed")
    )
    return sent - Counter(arrived)


def _sent_requests(trace: Trace, until: float = inf) -> Iterator[tuple[str, str]]:
    """Method and path of the requests that were sent to the daemon, not elsewhere or as a web page's."""
    kept_out = {mark.path for mark in marks_of(trace, marks.StrayMark)}
    kept_out |= {mark.path for mark in marks_of(trace, marks.RefusedMark)}
    for mark in marks_of(trace, marks.SentMark):
        for method, path, *_ in mark.requests if mark.seq < until else ():
            if path not in kept_out:
                yield method, path


_NUMBERS = ("handlers", "tools", "others", "refused")
NOTHING_REGISTERED = "registered: 0 handlers, 0 tools"


def registers_nothing(registered: Sequence[marks.RegisteredMark]) -> bool:
    """Whether a host got no handler, no tool and nothing else in any of its registrations."""
    known = {name: [getattr(mark, name) for mark in registered] for name in _NUMBERS}
    taken = {name: [number for number in numbers if number is not None] for name, numbers in known.items()}
    return bool(taken["handlers"] and taken["tools"]) and not any(number for each in taken.values() for number in each)


def _refusals_that_block(trace: Trace, absent: Collection[str]) -> Iterator[marks.InstalledMark]:
    """Refusals of the host that keep one of the operations from being called."""
    refused = (mark for mark in marks_of(trace, marks.InstalledMark) if mark.accepted is False and mark.words)
    return (mark for mark in refused if not set(mark.operations).isdisjoint(absent))


def refusals(traces: Iterable[Trace], *, counted: bool = True) -> Iterator[str]:
    """A remark that the recorder refused requests as a web page's, why, and what to do; nothing if it refused none.

    Without `counted` the remark holds no numbers, so that those of several traces are equal.
    """
    refused = Counter(mark.by for trace in traces for mark in marks_of(trace, marks.RefusedMark))
    if not refused:
        return
    count = refused.total()
    shown = first_of((printable(origin, 60) for origin, _ in refused.most_common()), _MOST_ORIGINS)
    which = "requests were" if not counted else "1 request was" if count == 1 else f"{count} requests were"
    yield (f"{which} refused (403) as a web page's (Origin: {shown}): send no Origin header and no Sec-Fetch-Site")


def _is_whole(trace: Trace) -> bool:
    ends = marks_of(trace, marks.ScenarioEndMark)
    return not trace.part and any(end.error is None and not end.part for end in ends)
