"""Descriptions of machines: plain data."""
