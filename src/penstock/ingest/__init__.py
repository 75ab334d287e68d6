"""The doors in."""
