"""The conclusion of a run: verdicts, known failures, coverage, generated sessions, missing scenarios."""
