"""``fragmentlab provider``: play a scenario to anyone's client; prints the base address to give to it."""

from __future__ import annotations

import argparse
import sys

from fragmentlab.disclosure import for_terminal

_NUMBERS = (
    ("port", 0, "port on 127.0.0.1"),
    ("pages", 3, "pages that the task reads"),
    ("kilobytes", 8, "KiB of the report that it saves"),
    ("parallel", 1, "pages asked for in one response"),
    ("seed", 1, "seed of IDs and texts"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    text = "a shipped scenario by name, or a scenario file"
    parser.add_argument("--scenario", required=True, metavar="NAME|FILE", help=text)
    for name, default, what in _NUMBERS:
        usual = "a free one" if name == "port" else default
        text = f"{what} (default: {usual})"
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=text)


def run(args: argparse.Namespace) -> int:
    from fragmentlab.runtime.provider import Provider
    from fragmentlab.runtime.scenarios import find_scenario
    from fragmentlab.runtime.task import Task

    task = Task(args.pages, args.kilobytes, args.parallel, args.seed)
    scenario = find_scenario(args.scenario)
    with Provider(args.port) as provider:
        provider.play(scenario, task)
        about = for_terminal(f"{scenario.name}: {scenario.about}")
        print(f"playing {about} Stop it with Ctrl-C.", file=sys.stderr)
        print(provider.address, flush=True)
        provider.wait()
    return 0
