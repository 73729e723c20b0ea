"""A conversation with a person: `signet-harness chat`, over whichever channel it is held."""
