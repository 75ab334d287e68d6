"""Settings: their names, their values, and where they are read.

setting    defines one setting with default, limits and reason; reads a table
broker     settings of the broker, table [broker]
edge       settings of the edge, table [edge]
analyze    settings of the queries, table [analyze]
topic      settings of a topic, by Kafka's names
layers     reads penstock.toml, then the environment, then flags
addresses  parses HOST:PORT, and refuses addresses that expose the broker
"""
