"""One task without a person: from a prompt to a reply, a session file and a summary."""
