"""Runs a whole node with a fake disk, network and clock under one seed, and checks named invariants.

__main__                `python -m proof.sim`: runs many seeds, prints the verdict
seeds                   runs one seed, and prints how to repeat a failure
story                   one run: faults, then recovery, then a final read
sweep                   one run for each disk call, in which that call fails

world                   one node with its disk, network and clients, step by step
world_view              what checks see of a world
profile                 sizes, rates and faults of a world, from its seed
fault_schedule          which fault occurs at which step
checks/                 the invariants
bugs/                   injected bugs that the invariants must detect

clients/                simulated clients
client_context          what clients share: randomness, time, connections, history
network                 fake connections that carry bytes and break
promises                what clients were promised, kept outside the node
transaction_operations  what owners of transactions did and saw

disk                    a fake disk that fails and loses unsynced writes
inode                   the content of one file or folder: durable and unsynced
page_cache              which pages of the fake disk are in memory
disk_image              the batches on the fake disk, read without the log's code
sync_jobs               syncs in flight
read_jobs               disk reads in flight
table_logs              compares a coordinator's state with the replay of its log
"""
