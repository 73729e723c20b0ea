"""What a session works with: options, environment and agent.yaml, read and checked before anything is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.daemon_client.routing import routing_table
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.mcp_servers.settings import Configured, configured
from signet_reference_harness.providers import Provider, registry, settings
from signet_reference_harness.providers.agent_file import read_agent_file
from signet_reference_harness.providers.settings import ProviderSettings
from signet_reference_harness.run.inputs import Folders, Options, stored_session
from signet_reference_harness.run.session_file import Stored
from signet_reference_harness.session.host import agent_in
from signet_reference_harness.tools import DaemonTool, Tool
from signet_reference_harness.tools.built_in import BUILT_IN
from signet_reference_harness.tools.files import FILE_TOOLS
from signet_reference_harness.tools.plugins import configured_tools, installed_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A session that can be begun. `config` is of the agent's own daemon; `stored` is what a named session holds."""

    folders: Folders
    identity: SessionIdentity
    stored: Stored | None
    config: HarnessConfig
    workspace: Path
    tools: tuple[Tool | DaemonTool, ...]
    settings: ProviderSettings
    provider: Provider
    mcp: Configured

    @classmethod
    def read(cls, options: Options, environ: Mapping[str, str], folders: Folders) -> Plan:
        """The plan that options and environment make. Raises HarnessError for what cannot be used."""
        key, stored = stored_session(options, folders)
        config = HarnessConfig.from_environment(environ)
        if stored is None:
            agent = options.agent or agent_in(key) or config.agent
            identity = SessionIdentity(key, agent, str(folders.project))
        else:
            identity = stored.identity
        routing = routing_table(environ)
        if routing is not None:
            config = routing.settings_for(identity.agent, config)
        workspace = settings.workspace_of(environ)
        asked = settings.load({name: getattr(options, name) for name in settings.FLAGS}, environ, workspace)
        if asked.key is not None and asked.key.is_secret:
            config = replace(config, provider_key=asked.key.reveal())
        return cls(
            folders=folders,
            identity=identity,
            stored=stored,
            config=config,
            workspace=workspace,
            tools=(*BUILT_IN, *FILE_TOOLS, *installed_tools(), *configured_tools(options.tools)),
            settings=asked,
            provider=registry.provider(asked),
            mcp=configured(read_agent_file(workspace), environ),
        )
