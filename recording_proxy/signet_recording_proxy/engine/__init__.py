"""Forwards HTTP/1.1 between clients and the daemon, over TLS if its address is https; llhttp parses both sides."""
