"""Figures and animations of what was computed."""
