"""Facts about the redaction of secrets."""
