"""The recorder: a reverse proxy in a process of its own that writes signet-trace/1."""
