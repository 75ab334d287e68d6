"""Drives `python -m penstock.analyze` in tests."""
