"""The page at / : what comes out, as it happens."""
