"""Break a running system on purpose, and judge what it did."""
