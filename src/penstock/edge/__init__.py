"""The process `edge`: hosts the connectors on one port, admits and stores events, serves results and the dashboard.

__main__         entry point: builds the parts, serves until SIGTERM
server           uvicorn with request deadlines and limits
guard            checks Host, Origin and token of every request
cors             CORS headers, and the answer to a preflight request
problems         HTTP errors that no route answers itself

intake           stores admitted events in the queue, and counts their outcomes
admission        checks an event against its topic; reads key and id
event_sizes      checks whether the topic takes an event of this size
memory_budget    limits the bytes of events in flight
event_counters   counters and latencies of stored events and of waits

results/         the result of an event: ?wait= and GET /results
dashboard/       the page at /
query_states     the last reported status of each query

operator_routes  GET /metrics, /health and /ready
query_reasons    why queries do not work, as sentences for /ready
query_metrics    metrics of every query, from its reports
group_metrics    metrics of consumer group lag
disk_metrics     metrics of free disk space
"""
