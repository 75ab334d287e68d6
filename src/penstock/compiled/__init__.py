"""The broker's hot modules, compiled by mypyc: which they are, how they are made and used (ADR 12)."""
