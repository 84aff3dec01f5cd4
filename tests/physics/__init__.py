"""Physics tests: every expected value comes from something that shares no code with the package."""
