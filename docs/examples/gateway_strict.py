"""A gateway that uses the kit's own assembler, behind ``--exec``: what a right one answers.

    fragmentlab qualify data/vectors --revision strict --long-lived \
        --exec "python docs/examples/gateway_strict.py --long-lived"
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from fragmentlab.assembler import Assembler


def outcome(body: bytes, context: dict[str, Any]) -> dict[str, Any]:
    """Assemble one response with the tools and limits that it is to be judged by."""
    assembler = Assembler(tools=context["tools"], limits=context["limits"], framing=context["framing"])
    assembler.feed(body)
    return assembler.finish(context["end"]).to_json(reveal=True)


def main() -> None:
    if "--long-lived" in sys.argv:
        for line in sys.stdin.buffer:
            context = json.loads(line)
            print(json.dumps(outcome(sys.stdin.buffer.read(context["length"]), context)), flush=True)
        return
    names = ("tools", "limits")
    context = {name: json.loads(os.environ.get(f"FRAGMENTLAB_{name.upper()}", "null")) for name in names}
    context |= {name: os.environ[f"FRAGMENTLAB_{name.upper()}"] for name in ("end", "framing")}
    print(json.dumps(outcome(sys.stdin.buffer.read(), context)))


if __name__ == "__main__":
    main()
