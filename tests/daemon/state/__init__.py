"""Facts about what a daemon remembers."""
