"""Suites that prove a plug-in of yours: subclass one, say how yours is made, and let pytest run it.

    from signet_conformance.contracts import ToolContract

    class TestWeather(ToolContract):
        def tool(self):
            return Weather()

        def arguments(self):
            return {"place": "Ulm"}

The fakes are those that the kit's own tests use: a provider, a channel, a daemon, what listens to a turn.
"""

from signet_conformance.contracts.adapter_server import AdapterServerContract
from signet_conformance.contracts.channel import ChannelContract
from signet_conformance.contracts.fakes import (
    Answer,
    DaemonTransport,
    EventRecorder,
    RecordingChannel,
    RecordingDaemon,
    Request,
    StreamingProvider,
)
from signet_conformance.contracts.provider import ProviderContract
from signet_conformance.contracts.tool import ToolContract
from signet_reference_harness.providers.scripted import ScriptedProvider

__all__ = [
    "AdapterServerContract",
    "Answer",
    "ChannelContract",
    "DaemonTransport",
    "EventRecorder",
    "ProviderContract",
    "RecordingChannel",
    "RecordingDaemon",
    "Request",
    "ScriptedProvider",
    "StreamingProvider",
    "ToolContract",
]
