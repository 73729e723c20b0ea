"""What an attacker may try on those who run the kit."""
