"""The examples that people copy."""
