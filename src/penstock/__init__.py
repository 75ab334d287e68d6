"""Penstock: a streaming data system in one Python package."""

__version__ = "0.1.0"
