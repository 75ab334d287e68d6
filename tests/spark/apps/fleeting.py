"""A query that may miss events, and never repeats one."""

from pyspark.sql import DataFrame

from penstock import App, Guarantee

fleeting = App("fleeting")
gone = Guarantee(outage="tolerable", loss="some", history="none", delivery="at-most-once")
ticks = fleeting.topic("ticks", schema="id STRING NOT NULL", guarantee=gone)
fleeting.topic("seen", guarantee=gone)


@fleeting.query(reads=ticks, writes="seen", state="memory")
def see(ticks: DataFrame) -> DataFrame:
    return ticks.select("id", "_event")
