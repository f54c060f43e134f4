"""Subjects over streams: runs recorded and compared, rule sets assessed, the verification note."""
