"""The kit judging itself: connectors and daemons broken on purpose, one change each, and who notices which."""
