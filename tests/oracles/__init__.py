"""Independent oracles for the tests: Pinocchio, plain NumPy and random machines. They import the data layer only."""
