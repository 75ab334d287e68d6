"""Card fraud: each purchase is decided while the customer waits."""
