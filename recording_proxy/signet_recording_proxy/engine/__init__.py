"""Carries the bytes: HTTP/1.1 both ways, on llhttp by way of httptools; to the daemon over TLS where it speaks it."""
