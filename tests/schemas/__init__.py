"""Facts about the schemas."""
