"""Runs Apache Kafka as the reference: a real node and its tools.

kafka                    one Apache Kafka node
tools                    the class path, and Kafka's own tools
kafka.jars               the pinned jars of Apache Kafka
node.log4j2.properties   the log configuration of the node
tools.log4j2.properties  the log configuration of the tools
"""
