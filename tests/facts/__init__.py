"""Facts about what the kit works out of a recording before any rule."""
