"""The state of one daemon: its store, sessions, agents, credentials, secrets."""
