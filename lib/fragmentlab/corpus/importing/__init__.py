"""Any recording to streams: sources, unpacking, documents, the finder, streams."""
