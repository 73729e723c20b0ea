"""Facts about the lean engine."""
