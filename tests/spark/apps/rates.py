"""A module beside the app, which declares a function for Spark, too."""

from pyspark.sql.functions import udf

RATE = 1.5


def parity(n: int) -> str:
    return "odd" if n % 2 else "even"


@udf("string")
def declared_beside(n: int) -> str:
    return parity(n)
