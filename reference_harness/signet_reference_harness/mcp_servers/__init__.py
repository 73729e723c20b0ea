"""MCP servers, found in agent.yaml and in the daemon's registry, and their tools; the package `mcp` speaks to them."""
