"""``fragmentlab provider``: play a scenario to anyone's client; prints the base address to give to it."""

from __future__ import annotations

import argparse
import sys

from fragmentlab.disclosure import for_terminal


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--scenario", required=True, metavar="NAME|FILE", help="the name of a shipped scenario, or a file")
    add("--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: a free one)")
    add("--pages", type=int, default=3, metavar="N", help="pages that the task reads")
    add("--kilobytes", type=int, default=8, metavar="N", help="KiB of the report that it saves")
    add("--parallel", type=int, default=1, metavar="N", help="pages asked for in one response")
    add("--seed", type=int, default=1, metavar="N", help="seed of IDs and texts")


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
