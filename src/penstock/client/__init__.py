"""The queue as a Kafka client sees it: what edge, analyze, supervisor and cli read from it and write to it.

factory         settings of every client: librdkafka, Spark's Java client, raw socket
record          one record as a reader gets it
offsets         partitions of a topic, and their offsets by end or time
start_words     the words `beginning` and `end`, and Kafka's words for them

producer        writes events for asyncio, and reports each outcome on the event loop
topic_writes    which topics fail writes, from the outcome of recent events
topic_limits    polls max.message.bytes of each topic

tail            follows topics from their end: one consumer and one thread a process
history_reader  reads old records of partitions from given offsets
lookup          finds single records: the last one, all, or one by header
tail_reader     finds the last committed record before a partition's end
group_lags      the lag of all consumer groups in some topics
group_commits   commits offsets of consumer groups without members

topics          creates the topics of a plan, and compares existing topics with it
topic_registry  the topic penstock.topics: which topics Penstock created or adopted
topic_identity  compares topic ids, to find topics that were deleted and re-created

transactions    lists, describes and aborts transactions
raw_requests    sends single Kafka requests that client libraries do not offer
lease           the lease that lets one run at a time write results
"""
