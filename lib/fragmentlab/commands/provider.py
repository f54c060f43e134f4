"""``fragmentlab provider``: play a scenario to anyone's client; prints the base address to give to it."""

from __future__ import annotations

import argparse
import sys

from fragmentlab.disclosure import for_terminal

HELP = "start the loopback provider for any client"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scenario",
        required=True,
        metavar="NAME|FILE",
        help="a shipped scenario by name, or a scenario file",
    )
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: a free one)"
    )
    parser.add_argument(
        "--pages", type=int, default=3, metavar="N", help="pages that the task reads (default: 3)"
    )
    parser.add_argument(
        "--kilobytes", type=int, default=8, metavar="N", help="KiB of the report that it saves (default: 8)"
    )
    parser.add_argument(
        "--parallel", type=int, default=1, metavar="N", help="pages asked for in one response (default: 1)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of IDs and texts (default: 1)")


def run(args: argparse.Namespace) -> int:
    from fragmentlab.runtime.scenarios import find_scenario
    from fragmentlab.runtime.task import Task

    task = Task(args.pages, args.kilobytes, args.parallel, args.seed)
    scenario = find_scenario(args.scenario)

    from fragmentlab.runtime.provider import Provider

    with Provider(args.port) as provider:
        provider.play(scenario, task)
        about = for_terminal(f"{scenario.name}: {scenario.about}")
        print(f"playing {about} Stop it with Ctrl-C.", file=sys.stderr)
        print(provider.address, flush=True)
        provider.wait()
    return 0
