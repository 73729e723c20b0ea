"""What a run came to, worked out once: verdicts, known failures, coverage, generated sessions, what is missing."""
