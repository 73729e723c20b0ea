"""A model server that answers from a script, in the formats of the vendors' interfaces, on loopback."""
