"""What strict assembly costs against ``orjson.loads`` of the same data lines, and how it grows.

Run ``python benchmarks/assembler.py``. Both sides are measured in turn in one process by its own processor
time, so the ratio holds on a noisy machine; the median over the rounds counts. The workload: SSE streams of
about 65 chunks of about 400 bytes, two calls of about 590 characters of arguments each.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial

import orjson

from fragmentlab.assembler import Result, assemble

TOOLS = ["save_report", "read_source"]


def main() -> None:
    """Print the ratio and the growth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=2000, help="streams of the workload (default 2000)")
    parser.add_argument("--rounds", type=int, default=7, help="paired rounds (default 7)")
    args = parser.parse_args()
    rng = random.Random(1)
    bodies = [body(rng, calls=2, fragments=31) for _ in range(args.streams)]
    lines = [line for stream in bodies for line in data_lines(stream)]
    mean = sum(map(len, lines)) / len(lines)
    print(f"{len(bodies)} streams, {len(lines) / len(bodies):.0f} data lines each, {mean:.0f} bytes a line")
    check = {assembled(stream).outcome for stream in bodies}
    print(f"outcomes: {', '.join(sorted(check))}")
    ratios = [paired(bodies, lines) for _ in range(args.rounds)]
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    print(f"strict assembly / orjson.loads: median {middle:.2f} (min {low:.2f}, max {high:.2f})")
    print("\nfragments a call   microseconds a fragment")
    for fragments in (10, 100, 1_000, 10_000):
        bodies = [body(rng, calls=1, fragments=fragments)] * max(1, 20_000 // fragments)
        best = min(timed(partial(each, assembled, bodies)) for _ in range(5))
        print(f"{fragments:16,}   {best / len(bodies) / fragments * 1e6:.2f}")


def paired(bodies: list[bytes], flat: list[bytes]) -> float:
    """Return assembly's time over that of decoding the same lines, measured one right after the other."""
    floor = timed(partial(each, orjson.loads, flat))
    return timed(partial(each, assembled, bodies)) / floor


def assembled(stream: bytes) -> Result:
    """Assemble one stream with every check on."""
    return assemble(stream, tools=TOOLS)


def each(work: Callable[[bytes], object], items: Iterable[bytes]) -> None:
    """Do the work on each item and keep no result, so that no side pays for the other's memory."""
    for item in items:
        work(item)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of one call, without the collector's pauses."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    gc.enable()
    return seconds


def body(rng: random.Random, calls: int, fragments: int) -> bytes:
    """Return one stream: a role chunk, each call in the given number of fragments, finish and [DONE]."""
    identity = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=29))
    events = [chunk(identity, rng, {"role": "assistant", "content": None, "refusal": None})]
    for index in range(calls):
        text = arguments(rng, fragments)
        function = {"name": TOOLS[index % 2], "arguments": ""}
        first = {
            "index": index,
            "id": f"call_{index}{identity[:20]}",
            "type": "function",
            "function": function,
        }
        events.append(chunk(identity, rng, {"tool_calls": [first]}))
        step = max(1, -(-len(text) // fragments))
        for start in range(0, len(text), step):
            piece = {"index": index, "function": {"arguments": text[start : start + step]}}
            events.append(chunk(identity, rng, {"tool_calls": [piece]}))
    events.append(chunk(identity, rng, {}, "tool_calls"))
    return b"".join(b"data: " + event + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def arguments(rng: random.Random, fragments: int) -> str:
    """Return a JSON object of about 19 characters a fragment."""
    words = "reads the page of a source and keeps what it says about rivers and towns".split()
    text = " ".join(rng.choice(words) for _ in range(fragments * 19 // 5))
    return json.dumps({"source": "notes", "page": rng.randrange(99), "text": text[: fragments * 19 - 45]})


def chunk(identity: str, rng: random.Random, delta: dict[str, object], finish: str | None = None) -> bytes:
    """Return one chunk of about 400 bytes with padding of random length, as a large provider sends it."""
    padding = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randrange(8, 20)))
    return orjson.dumps(
        {
            "id": f"chatcmpl-{identity}",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": "gpt-4o-mini-2024-07-18",
            "service_tier": "default",
            "system_fingerprint": "fp_0123456789",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
            "usage": None,
            "obfuscation": padding,
        }
    )


def data_lines(stream: bytes) -> list[bytes]:
    """Return the JSON of each data line."""
    return [line[6:] for line in stream.split(b"\n") if line.startswith(b"data: {")]


if __name__ == "__main__":
    main()
