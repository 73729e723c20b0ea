"""Facts about the embedded daemon."""
