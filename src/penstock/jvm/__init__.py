"""Java, and what runs on it: pinned jars and a real Apache Kafka as the oracle of tests and benches."""
