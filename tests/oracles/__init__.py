"""Independent oracles for the tests: Pinocchio, plain NumPy, random machines; they use the data layer only."""
