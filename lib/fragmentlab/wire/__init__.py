"""The wire form of a streamed response: recognised, read and written in one place."""
