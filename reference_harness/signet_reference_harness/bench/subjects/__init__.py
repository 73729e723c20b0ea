"""What can be measured: daemons, and baselines that need none."""
