"""Facts about the server and the application."""
