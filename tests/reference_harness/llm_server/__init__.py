"""The scripted model server, read by the vendors' own packages."""
