"""An event: its schema, its headers, the formats that carry it, and what queries report and are ordered.

schema         parses a topic's DDL schema, and validates events against it
type_json      the text of any Spark type as the JSON that PySpark reads
headers        names of record headers and internal topics; keys
event          the bytes of an event with its key, id and headers
record_format  the formats of a record, and the schemas that fit them
identity       ids, sequence numbers and timestamps for new events
formats        the format of a request body, by its content type
cloudevents    reads CloudEvents 1.0 in its three HTTP forms
query_status   the status report of a query, a record of penstock.queries
query_order    what an operator orders a query to do
"""
