"""Java and Spark's JVM: finds Java, fetches pinned jars, starts Spark.

java                     finds a Java that is new enough
jars                     fetches pinned jars into the cache, and verifies their checksums
spark.jars               the pinned jars that the pyspark package lacks
spark                    starts Spark's JVM; gives PySpark the port and secret
spark.log4j2.properties  the log configuration of Spark's JVM
worker_output            the file that the JVM and its Python workers print to

spark_start              starts the JVM with the class archive; makes a missing one
class_archive            the archive of loaded classes (AppCDS) that shortens a start
unsigned_jars            copies of signed jars without signatures, for the class archive
compiler_priority        lowers the priority of the JVM's compiler threads
"""
