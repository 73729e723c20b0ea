"""Carries the bytes: HTTP/1.1 both ways, parsed by llhttp through httptools; to the daemon over TLS if it speaks it."""
