"""Unit tests: closed forms, edge cases and the text of errors."""
