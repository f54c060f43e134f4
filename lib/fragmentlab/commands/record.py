"""``fragmentlab record``: a loopback relay that keeps each streamed answer and says its outcome."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress

DESCRIPTION = """\
Passes every request on to the upstream server and every answer back, read by read and unchanged. Each
streamed Chat Completions answer becomes one file in DIR, which `assemble`, `import` and `report -p file=`
read. It holds the bytes of the answer, how it ended and the names of the tools offered: no header, no key,
no prompt, no address. What was answered is in it, so keep it to yourself; `import` makes a batch that may
leave.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = DESCRIPTION
    parser.add_argument(
        "--upstream",
        required=True,
        metavar="URL",
        help="the server's base URL, as a client would be given it",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the recordings")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: a free one)"
    )


def run(args: argparse.Namespace) -> int:
    from fragmentlab.runtime.recordings import Recordings
    from fragmentlab.runtime.relay import Relay
    from fragmentlab.wire.recorder import recordings_folder

    recordings = Recordings(args.out, _tell)
    with Relay(args.upstream, recordings.listen, args.port) as relay:
        recordings_folder(args.out)
        _tell("give clients this base URL; stop with Ctrl-C")
        print(relay.address, flush=True)
        with suppress(KeyboardInterrupt):
            relay.wait()
    _tell(recordings.summary())
    print(recordings.folder)
    return 0


def _tell(line: str) -> None:
    with suppress(OSError):  # nobody may be reading any more
        print(line, file=sys.stderr, flush=True)
