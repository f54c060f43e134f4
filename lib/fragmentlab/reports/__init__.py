"""Tables, charts, papermill execution and HTML rendering."""
