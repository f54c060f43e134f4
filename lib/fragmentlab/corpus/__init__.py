"""Where streams come from: vectors, batches, imports, synthetic generation."""
