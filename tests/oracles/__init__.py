"""Independent oracles for the tests: Pinocchio, plain NumPy, random machines; use the data layer only."""
