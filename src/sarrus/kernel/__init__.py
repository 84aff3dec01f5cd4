"""Generated C: printing, compiling, caching and calling it."""
