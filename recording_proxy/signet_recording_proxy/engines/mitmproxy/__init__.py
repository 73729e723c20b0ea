"""mitmproxy in reverse mode. Nothing else of the recorder names mitmproxy, but for its flow files."""
