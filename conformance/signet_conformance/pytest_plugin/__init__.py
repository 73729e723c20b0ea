"""The pytest face of the kit: hooks that load the rest only in a run that asks for it."""
