"""Work-precision benchmark: error reached against processor time, Sarrus and its peers on published problems."""
