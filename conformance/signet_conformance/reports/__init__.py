"""What people and programs read of a run, one format a module: judged traces in, lines or a document out."""
