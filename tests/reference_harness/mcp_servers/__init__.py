"""MCP servers, in agent.yaml and in the registry, as a session uses them."""
