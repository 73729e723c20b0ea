"""Facts about the trace format."""
