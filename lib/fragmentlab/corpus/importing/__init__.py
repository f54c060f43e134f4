"""Any recording to streams: sources to documents, through containers to bodies, to streams."""
