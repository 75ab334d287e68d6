"""From a declared app to what will run: checks, policies, and the plan that every process reads.

planner            `plan_app`: from an app and a queue to its plan
plan               the plan as values: topics, queries, endpoints, deliveries, paths
policies           what a guarantee sets in each tier, with the reasons
guarantees         the guarantee of each topic, declared or inherited
paths              the path of a delivery, and its weakest link
tables             the tables of an app, and every fault of them
inputs             tells the topics and the tables that a query reads apart
sql                the topics, tables and views in a query's SQL

checks             every fault of an app
declared_types     checks the types of declared values

topics             every topic that a plan needs, with settings
topic_differences  decides what to do about each difference between topic and plan
text               a plan as text and JSON
declaration         what an app declares, as values of the run spec
run_spec           what the supervisor passes to its child processes
"""
