"""Facts about what the routes answer."""
