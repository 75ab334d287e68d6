"""Compiles the broker's hot modules with mypyc, and loads the compiled modules (ADR 12).

modules  which modules are compiled, and the folder of their libraries
make     compiles them
use      imports the compiled modules in place of their sources
"""
