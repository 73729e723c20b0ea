"""Facts about child processes."""
