"""Runs the continuous queries of an app on Spark; only this package and the demo app import PySpark.

__main__        entry point of the process `analyze`
conductor       starts Spark, builds all queries, runs them until the process stops
dry_run         asks Spark, without a queue, which queries can run and how
query_trial     runs one query on given records, without a queue, for a test
trial_records   the records that go into a query trial and come out
state_reader    reads the state of a query from its checkpoint

tables          copies the tables that queries join, and reads them again
query_builder   builds each query as a streaming DataFrame, or lists its errors
frames/         DataFrames: records to rows, rows to results, dead letters
emits           chooses which result rows a query writes; remarks on its state
modes           chooses real time or micro-batches for a query, with the reason
jobs            starts queries and dead letters on Spark with their options and checkpoints
worker_trial    tries Python functions on a worker before the first event
function_references  what a Python function refers to, and what of it cannot travel
exactly_once/   writes the results and the token of a batch in one transaction
driver_sink     writes results from the driver, at least once
late_events     writes events that come after the watermark to TOPIC.late
result_table    compares the whole result with that of the batch before
record_writer   writes records from the driver and waits for the queue

runner          runs one query: starts it, reads its progress, notices its end
lifecycle       the states of one query: starting, running, waiting, restarting, parked, stopped
failures        classifies the error of an ended query by what must happen next
spark_text      what an error of Spark says, in one line
python_error    finds the last Python error and its line in Spark's text
checkpoints     the checkpoint folder of a query: what is kept, positions, sync
kept            what is kept of a query beside its checkpoint, and of orders
changes         which queries may go on from their checkpoints; refuses the others
leftovers       checkpoints of queries that the app no longer declares
order_logs      orders for queries: a file of the data folder, and a topic
fingerprint/    what a query is: whether a changed query may go on

progress        turns Spark's progress reports into numbers: lag, rates, watermark, movement
processing      least, mean and most processing time over the last minute
result_latency  samples the latest results of output topics: latency and position
queue_probe     asks the queue for partitions, topic ids and offsets
group_positions  commits the positions of each query as a consumer group
reporter        thread that writes the status of each query to penstock.queries

session         opens the Spark session of a run, and one session a query
app_archive     sends the app's code to Spark's workers
standalone_session  opens a Spark session without a queue: for checks and tests
settings        every Spark setting with its origin, and the task slots needed
setting_names   finds misspelt names of Spark settings
task_slots      asks Spark how many task slots its executors have
event_logs      deletes old event logs of Spark
"""
