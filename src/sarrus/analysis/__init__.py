"""What a machine is like: checks and, later, diagnoses and maps."""
