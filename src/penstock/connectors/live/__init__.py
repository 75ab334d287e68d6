"""GET /live: results pushed to clients over server-sent events or WebSocket, with resume.

routes          the routes: parses a request, chooses the wire, starts the session
start_position  where a client starts and ends, parsed from its request
position_token  the resume token: the next offset of each partition, as text
envelope        a record or notice as the JSON that clients read

session         one client from first to last message: history, then live records
hub             follows the topics once, admits clients, owns streams and counters
stream          all clients of the same topics; encodes each message once
recent          the latest records of a topic, in memory
backlog         unsent messages of one client, and the policy for slow clients
limit           the end of one client's stream, and whether it is reached

sse             writes messages as server-sent events
websocket       writes messages as WebSocket text
"""
