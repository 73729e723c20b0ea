"""The hooks of a session."""
