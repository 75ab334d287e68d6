"""Converts records to the rows of a query and its result rows to records, as Spark DataFrames.

rows          reads a topic; separates records that parse from the others
plans         reads Spark's analyzed plan: operators, expressions, columns
meaning       whether rows replace others, and by which key, from Spark's plan
results       converts a result DataFrame to key, value and headers of records
dead_letters  writes records that reach no query to TOPIC.dead with the reason
spark_types   writes a topic's schema as a DDL text for Spark's parser
call_sites    switches off PySpark's call-site capture for Penstock's own columns
"""
