"""What strict assembly costs against ``orjson.loads`` of the same data, and how it grows.

Run ``python benchmarks/assembler.py [RECORDING or FOLDER ...]``. Both sides are measured in turn in one
process by its own processor time, so that the ratios hold on a busy machine; the median over the rounds
counts. Three workloads: made streams (about 65 chunks of 400 bytes, two calls of 590 characters), the
committed recordings and, where given, your own.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson

from fragmentlab.assembler import assemble
from fragmentlab.corpus.batches import open_batch
from fragmentlab.corpus.streams import Stream
from fragmentlab.wire.events import body, payloads
from fragmentlab.wire.fragments import delta, fragment, pieces

WORDS = "reads the page of a source and keeps what it says about rivers and towns".split()
HEADER = f"{'workload':22} streams     lines  {'median':>17}   min   max {'median':>15}  90 %   worst"
SUFFIXES = (".sse", ".jsonl", ".txt")


def main() -> None:
    """Print the ratios of each workload and the growth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recordings", nargs="*", type=Path, help="recorded streams, or folders of them")
    parser.add_argument("--streams", type=int, default=1000, help="made streams (default 1000)")
    parser.add_argument("--rounds", type=int, default=7, help="paired rounds (default 7)")
    args = parser.parse_args()
    rng = random.Random(1)
    workloads = {
        "made": [made(rng, calls=2, fragments=31) for _ in range(args.streams)],
        "committed recordings": list(open_batch("captured-local").streams()),
        "given recordings": list(recordings(args.recordings)),
    }
    print(f"{'':22} {'':7} {'':9}  {'all streams at once':>29}   {'stream by stream':>27}")
    print(HEADER)
    for name, found in workloads.items():
        if found:
            # The framing is told from the body once, not in each round.
            print(row(name, [replace(stream, framed=stream.framing) for stream in found], args.rounds))
    print("\nfragments a call   microseconds a fragment")
    for fragments in (10, 100, 1_000, 10_000):
        streams = [made(rng, calls=1, fragments=fragments)] * max(1, 20_000 // fragments)
        best = min(timed(partial(assemble_all, streams)) for _ in range(args.rounds))
        print(f"{fragments:16,}   {best / len(streams) / fragments * 1e6:.2f}")


def row(name: str, streams: Sequence[Stream], rounds: int) -> str:
    """Return a line of the table: assembly's time over the floor's, of all streams and stream by stream."""
    data = [list(readable(stream)) for stream in streams]
    flat = [line for lines in data for line in lines]
    ratios = [timed(partial(assemble_all, streams)) / timed(partial(load_all, flat)) for _ in range(rounds)]
    each = sorted(
        min(timed(partial(assemble_all, [stream])) for _ in range(rounds))
        / min(timed(partial(load_all, lines)) for _ in range(rounds))
        for stream, lines in zip(streams, data, strict=True)
        if lines
    )
    return (
        f"{name:22} {len(streams):7,} {len(flat):9,}  {statistics.median(ratios):17.2f} {min(ratios):5.2f} "
        f"{max(ratios):5.2f} {statistics.median(each):15.2f} {each[len(each) * 9 // 10]:5.2f} {each[-1]:7.2f}"
    )


def assemble_all(streams: Sequence[Stream]) -> None:
    """Assemble each stream with every check on and keep no result."""
    for stream in streams:
        assemble(stream.body, framing=stream.framed or "sse", end=stream.end)


def load_all(lines: Sequence[bytes]) -> None:
    """Decode the same data, and do nothing else."""
    for line in lines:
        orjson.loads(line)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of one call, without the collector's pauses."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    gc.enable()
    return seconds


def readable(stream: Stream) -> Iterator[bytes]:
    """Yield the data of each event that is JSON."""
    for data in payloads(stream.body, stream.framing):
        try:
            orjson.loads(data)
        except ValueError:
            continue
        yield data


def recordings(paths: Sequence[Path]) -> Iterator[Stream]:
    """Yield the recordings of files and folders."""
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in SUFFIXES or file == path:
                yield Stream(file.name, file.read_bytes())


def made(rng: random.Random, calls: int, fragments: int) -> Stream:
    """Return one stream: a role chunk, each call in the given number of fragments, finish and [DONE]."""
    chunks = [chunk(rng, {"role": "assistant", "content": None, "refusal": None})]
    for index in range(calls):
        opening = {"name": "save_report", "arguments": ""}
        first = fragment(index, opening, id=f"call_{index}{rng.getrandbits(80):020x}", type="function")
        chunks.append(chunk(rng, delta(first)))
        text = json.dumps({"text": " ".join(rng.choices(WORDS, k=fragments * 4))})
        for piece in pieces(text, -(-len(text) // fragments)):
            chunks.append(chunk(rng, delta(fragment(index, {"arguments": piece}))))
    chunks.append(chunk(rng, {}, "tool_calls"))
    return Stream("made", body(chunks))


def chunk(rng: random.Random, said: dict[str, object], finish: str | None = None) -> dict[str, object]:
    """Return one chunk of about 400 bytes with padding of random length, as a large provider sends it."""
    return {
        "id": "chatcmpl-0123456789abcdefghijklmnopqrs",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "gpt-4o-mini-2024-07-18",
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
        "choices": [{"index": 0, "delta": said, "logprobs": None, "finish_reason": finish}],
        "usage": None,
        "obfuscation": "x" * rng.randrange(8, 20),
    }


if __name__ == "__main__":
    main()
