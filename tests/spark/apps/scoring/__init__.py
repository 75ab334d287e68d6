"""A package beside the app."""
