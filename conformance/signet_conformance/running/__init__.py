"""One run: daemon, recorder, the workers that perform scenarios, and generated sessions. It judges nothing itself."""
