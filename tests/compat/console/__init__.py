"""Web consoles for Kafka that open on a broker under test."""
