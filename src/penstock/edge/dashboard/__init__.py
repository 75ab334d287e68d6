"""The page at /: the app, its queries and its results as they arrive.

routes     serves the page, its files and its JSON
app_facts  what the page shows of an app: endpoints, deliveries, a sample event
static/    the page's HTML, CSS and JavaScript
"""
