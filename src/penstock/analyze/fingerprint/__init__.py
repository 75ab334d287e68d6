"""What a query is, kept beside its checkpoint: a changed query goes on, or is refused before the start.

comparison       a fingerprint, and what may differ between the kept one and today's
of_query         takes the fingerprint of a query that was built
plan_text        the stateful part of a plan as text, its topics, its columns
function_source  a digest of the app's own code that a function uses
"""
