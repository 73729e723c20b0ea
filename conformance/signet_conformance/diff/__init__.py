"""What differs between two recordings, and which requirement reads it. Knows neither rules nor verdicts."""
