"""The command `penstock`, one file a command.

main               the table of commands; reports errors with an exit status
shared/            what several commands share: connection, arguments, output, texts

run                `penstock run`: an app with its broker, edge and queries
dry_run            `penstock run --dry-run`: prints the plan and every fault; starts nothing
offline_topics     topics of a stopped broker, read from its data folder
demo               `penstock demo`: the fraud app with generated purchases
broker             `penstock broker`: the broker alone, in the foreground

topics             `penstock topics`: lists, creates, describes, alters and deletes topics
topic_description  what `topics describe` prints: id, partitions, offsets, changed settings
produce            `penstock produce`: writes lines as records and reports acknowledgements
consume            `penstock consume`: prints records of a topic, alone or in a group
tap                `penstock tap`: prints new records of all matching topics
groups             `penstock groups`: lists, describes, resets and deletes consumer groups
transactions       `penstock transactions`: lists, describes and aborts transactions
queries            `penstock queries`: prints the reported status of each query
query_orders       `penstock queries pause|resume|restart|start|drop`: orders to one query
state              `penstock state`: prints what a query remembers

config             `penstock config`: prints settings with their origin, and explains them
doctor             `penstock doctor`: checks this machine, or a data folder for damage
compile            `penstock compile`: compiles the hot modules of the broker
completion         `penstock completion`: prints the completion script of a shell
"""
