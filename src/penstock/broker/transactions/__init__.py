"""Transactions: who may write under which name, what belongs together, how it ends."""
