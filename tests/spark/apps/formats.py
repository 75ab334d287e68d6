"""Records that are no JSON, in and out, and a function with several outputs."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock import App

formats = App("formats")
lines = formats.topic("lines", schema="line STRING", format="text")
blobs = formats.topic("blobs", schema="body BINARY", format="bytes")
readings = formats.topic("readings", schema="sensor STRING NOT NULL, celsius DOUBLE, at TIMESTAMP", format="csv")
shouts = formats.topic("shouts", schema="shout STRING", format="text")
copies = formats.topic("copies", schema="body BINARY", format="bytes")
hot = formats.topic("hot", schema="sensor STRING, celsius DOUBLE, at TIMESTAMP", format="csv", key="sensor")


@formats.query(reads=lines, writes=shouts)
def shout(lines: DataFrame) -> DataFrame:
    return lines.select(F.upper("line").alias("shout"), "_event")


@formats.query(reads=blobs, writes=copies)
def copy(blobs: DataFrame) -> DataFrame:
    return blobs.select("body", "_event")


@formats.query(reads=readings, writes={"hot": hot, "cold": "cold"})
def by_warmth(readings: DataFrame) -> dict[str, DataFrame]:
    return {"hot": readings.where("celsius > 30"), "cold": readings.where("celsius < 0")}
