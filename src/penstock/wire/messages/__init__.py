"""One module an API: its request and response as tables, in the field order of the wire."""
