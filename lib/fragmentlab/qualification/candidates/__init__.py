"""Rule sets assessed over streams and by model checking."""
