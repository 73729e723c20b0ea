"""Child processes: a group of their own, deadlines, always reaped; and the signals that end the kit itself."""
