"""MCP servers of agent.yaml and of the registry, as a session uses them."""
