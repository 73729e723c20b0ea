"""Test suites for plug-ins of yours: subclass one, let it make your plug-in, and run pytest.

    from signet_conformance.contracts import ToolContract

    class TestWeather(ToolContract):
        def tool(self):
            return Weather()

        def arguments(self):
            return {"place": "Ulm"}

The fakes are those that the kit's own tests use: providers, a channel, daemons, a listener to a turn.
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
