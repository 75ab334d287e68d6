"""The broker: a queue on one machine that speaks Kafka's protocol.

server/        the broker's process: event loop, sockets, disk, threads
node           `Node.step`: events in, effects out; the only entry
dispatch       the table of APIs and their handlers
call           one request, and the reply to it
handlers/      one file an API

core/          what all handlers build on: partitions, catalog, limits, waiting requests
log/           one partition on disk
groups/        consumer groups, classic and KIP-848
transactions/  the transaction coordinator

offline/       reads a data folder without a broker
compiled/      compiles the hot modules with mypyc, and loads them
"""
