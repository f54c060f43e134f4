"""Rule sets judged over streams and by model checking."""
