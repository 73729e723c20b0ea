"""The providers, through the vendors' own packages, against the scripted model server."""
