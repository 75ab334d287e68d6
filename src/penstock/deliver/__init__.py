"""The doors out."""
