"""What release 0.58 answers where later ones answer otherwise: one agent for most, no epochs, no scopes, no jobs."""
