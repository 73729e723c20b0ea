"""The providers, against the scripted model server."""
