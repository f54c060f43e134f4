"""Recordings that tests read are no tests."""

collect_ignore_glob = ["found/*"]
