"""The lean engine: plain HTTP/1.1 both ways, on llhttp by way of httptools, and nothing else."""
