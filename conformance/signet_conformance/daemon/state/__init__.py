"""What is true in one daemon: its store, sessions, agents, credentials, secrets."""
