"""Runs real clients on a real broker under faults, and checks what the clients recorded.

__main__             `python -m proof.storm`: runs a storm, writes the report
run                  one storm from start to verdict
fault_schedule       which fault occurs when, from one seed
fault_injector       applies the faults to broker, proxy, clients and disk
target_broker        the broker under test: Penstock's or Apache Kafka
fragile_disk         a mounted file system whose power can be cut

client_processes     all clients, one process each
client               the process of one client
roles                what a writer, transactional owner, group member, follower or copier does
administrator        the role that changes topics and describes groups
client_library       the common interface of the client libraries
confluent_client     confluent-kafka
kafka_python_client  kafka-python
aiokafka_client      aiokafka

recording            histories with timestamps, merged from all processes
offset_auditor       reads the positions of all groups every half second
final_checks         after the faults: groups catch up, a final read
activity_check       adds a doubt if clients or faults did too little
timeline             draws a storm as a picture
"""
