"""Real programs that people run, driven without a user: each with the connector as its installer leaves it."""
