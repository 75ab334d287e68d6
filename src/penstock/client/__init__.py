"""The queue as everything outside the broker sees it: an ordinary Kafka client."""
