"""Reads a data folder while no broker serves it.

read_only_disk  a disk that refuses every write
survey          inspects every log of a data folder, by topic name
"""
