"""A channel to the person at a terminal: a screen with a line editor, or plain lines where there can be none."""
