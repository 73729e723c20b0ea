"""Facts about captures that others made."""
