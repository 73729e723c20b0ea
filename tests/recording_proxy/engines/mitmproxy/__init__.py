"""Facts about the engine on mitmproxy."""
