"""Anyone's command as a subject: right, wrong in every way we know, and never able to take the run down."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import textwrap
import time
from contextlib import closing
from pathlib import Path

import pytest

from fragmentlab.corpus.streams import Stream
from fragmentlab.errors import InputError
from fragmentlab.subjects.answer import read_answer
from fragmentlab.subjects.command import CommandSubject, parse_command
from fragmentlab.subjects.interface import UNLISTED, UNNAMED, Observation
from fragmentlab.subjects.process import Bounds

BODY = b"data: [DONE]\n\n"
ACCEPTED = {"outcome": "accepted", "calls": [{"id": "a", "name": "n", "arguments": "{}"}]}
NO_CALLS = 'print(\'{"outcome": "no_calls"}\')'


def _run(script: str, *, seconds: float = 20, body: bytes = BODY, **options: object) -> Observation:
    subject = CommandSubject(
        (sys.executable, "-S", "-c", textwrap.dedent(script)),
        bounds=Bounds(seconds, memory_bytes=256 << 20, output_bytes=1 << 16),
        **options,  # type: ignore[arg-type]
    )
    try:
        return subject.observe(Stream("s-1", body))
    finally:
        subject.close()


def _is_running(pid: int) -> bool:
    try:
        # A killed process that nobody has reaped yet is no longer running.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _assert_ends(pid: int) -> None:
    """Wait for a killed process to be gone: a signal is delivered, but not at once."""
    deadline = time.monotonic() + 10
    while _is_running(pid):
        assert time.monotonic() < deadline
        os.sched_yield()


@pytest.mark.parametrize(
    ("script", "category"),
    [
        ("print('hello')", "subject.garbage"),
        ("print('[]')", "subject.garbage"),
        ('print(\'{"outcome": "fine"}\')', "subject.garbage"),
        ('print(\'{"outcome": "accepted", "calls": []}\')', "subject.garbage"),
        ('print(\'{"outcome": "accepted", "calls": [{"id": 7}]}\')', "subject.garbage"),
        ("print('[' * 5000)", "subject.garbage"),
        ('print(\'{"outcome": "accepted", "outcome": "no_calls"}\')', "subject.garbage"),
        ("import os; os.write(1, bytes(range(256)))", "subject.garbage"),
        ("", "subject.garbage"),
        ("raise SystemExit(3)", "subject.crashed"),
        ("import os; os.kill(os.getpid(), 11)", "subject.crashed"),
        (f"{NO_CALLS}; raise SystemExit(2)", "subject.crashed"),
        ("while True: print('x' * 1000)", "subject.flood"),
        ("import sys\nwhile True: sys.stderr.write('x' * 1000)", "subject.flood"),
        ("held = []\nwhile True: held.append(bytearray(1 << 20))", "subject.memory"),
        ("bytearray(1 << 40)", "subject.memory"),
    ],
)
def test_a_broken_subject_is_an_outcome_of_its_own(script: str, category: str) -> None:
    """Garbage, crashes, floods and greed are recorded by name, and nothing that was printed is kept."""
    observation = _run(script)
    assert (observation.outcome, observation.category) == ("failed", category)
    assert (observation.calls, observation.faults) == ((), ())


def test_a_small_subject_of_a_large_parent_is_not_large() -> None:
    """The kit's own memory is never taken for the subject's."""
    held = bytearray(b"x" * (300 << 20))
    assert _run(NO_CALLS).outcome == "no_calls"
    assert held


@pytest.mark.parametrize("script", ["while True: pass", "import time; time.sleep(600)"])
def test_a_subject_that_hangs_is_killed(script: str) -> None:
    """Busy or idle, a subject ends with its time limit."""
    observation = _run(script, seconds=0.5)
    assert observation.category == "subject.timeout"
    assert observation.seconds < 20


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc")
@pytest.mark.parametrize("leaves", [False, True], ids=["in its session", "in a session of its own"])
def test_what_a_subject_forked_dies_with_it(tmp_path: Path, leaves: bool) -> None:
    """A child left in the background does not outlive the subject, nor delay its answer."""
    script = f"""
        import os, time
        ready, told = os.pipe()
        if os.fork():
            os.read(ready, 1)
            {NO_CALLS}
        else:
            {"os.setsid()" if leaves else "pass"}
            open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
            os.write(told, b"x")
            time.sleep(600)
    """
    assert _run(script).outcome == "no_calls"
    _assert_ends(int((tmp_path / "pid").read_text()))


def test_a_fork_bomb_ends() -> None:
    """A subject that forks without end is killed with all it made."""
    observation = _run(
        "import os\nfor _ in range(64):\n    os.fork()\n    if _ > 4: break\nwhile True: pass", seconds=1
    )
    assert observation.outcome == "failed"


def test_a_subject_has_no_terminal() -> None:
    """The terminal of the person who runs the kit cannot be opened by the usual name."""
    script = f"""
        try:
            open("/dev/tty", "w")
        except OSError:
            {NO_CALLS}
    """
    assert _run(script).outcome == "no_calls"


def test_the_bytes_arrive_as_they_are() -> None:
    """The body comes on standard input, large ones too, and the end of input follows."""
    body = os.urandom(3 << 20)
    script = f"""
        import hashlib, sys
        if hashlib.sha256(sys.stdin.buffer.read()).hexdigest() == {hashlib.sha256(body).hexdigest()!r}:
            {NO_CALLS}
    """
    assert _run(script, body=body).outcome == "no_calls"


def test_a_subject_may_answer_before_it_has_read_everything() -> None:
    """Refusing early is no crash."""
    assert _run(NO_CALLS, body=b"x" * (3 << 20)).outcome == "no_calls"


def test_the_context_stands_in_the_environment() -> None:
    """Tools, limits, framing and the transport's end reach the subject."""
    script = """
        import json, os
        facts = [os.environ["FRAGMENTLAB_END"], os.environ["FRAGMENTLAB_FRAMING"]]
        facts += [json.loads(os.environ["FRAGMENTLAB_" + name]) for name in ("TOOLS", "LIMITS")]
        if facts == ["clean", "sse", ["t"], {"events": 3}]:
            print('{"outcome": "no_calls"}')
    """
    from fragmentlab.assembler import Limits

    subject = CommandSubject((sys.executable, "-S", "-c", textwrap.dedent(script)))
    case = Stream("s", BODY, end="clean", tools=("t",), limits=Limits(events=3))
    with closing(subject):
        assert subject.observe(case).outcome == "no_calls"


LONG_LIVED = """
    import json, os, sys
    for line in sys.stdin.buffer:
        header = json.loads(line)
        body = sys.stdin.buffer.read(header["length"])
        if body == b"die": os._exit(0)
        if body == b"hang":
            while True: pass
        answer = {"outcome": "rejected", "category": "completion.length", "faults": []}
        print(json.dumps(answer) + ("\\nmore" if body == b"two" else ""), flush=True)
"""


def test_a_long_lived_subject_answers_stream_by_stream() -> None:
    """One process takes all streams; after a failure the next stream meets a new one."""
    subject = CommandSubject(
        (sys.executable, "-S", "-c", textwrap.dedent(LONG_LIVED)), long_lived=True, bounds=Bounds(seconds=3)
    )
    bodies = [b"one", b"x" * (1 << 20), b"die", b"", b"two", b"last", b"hang", b"end"]
    categories = [subject.observe(Stream("s", body)).category for body in bodies]
    subject.close()
    fine = "completion.length"
    assert categories[:4] == [fine, fine, "subject.crashed", fine]
    assert categories[4] in ("subject.garbage", fine)  # the second line may come after the first was taken
    assert categories[6:] == ["subject.timeout", fine]


def test_only_known_and_declared_categories_are_taken() -> None:
    """A category is one of the kit's or declared; any other text is replaced, and so is none."""

    def category(value: object) -> str | None:
        answer = json.dumps({"outcome": "rejected", "category": value}).encode()
        return read_answer(answer, 0.0, frozenset({"ours"})).category

    assert [category(value) for value in ("identity.conflict", "ours", "secret", 7, None)] == [
        "identity.conflict", "ours", UNLISTED, UNLISTED, UNNAMED,
    ]  # fmt: skip


def test_no_text_of_an_answer_survives_in_its_faults() -> None:
    """Of a fault only closed vocabularies and ordinals are taken."""
    fault = {
        "category": "identity.conflict",
        "stage": "CANARY",
        "event": "CANARY",
        "fragment": 3,
        "call": True,
    }
    fault |= {"incoming_kind": "CANARY", "had_id": "CANARY", "note": "CANARY", "flags": {"CANARY": 1}}
    answer = {"outcome": "rejected", "category": "identity.conflict", "faults": [fault]}
    observation = read_answer(json.dumps(answer).encode(), 0.0, frozenset())
    assert "CANARY" not in repr(observation.faults)
    assert observation.faults[0].fragment == 3
    assert observation.faults[0].call is None


def test_calls_are_ordered_by_index() -> None:
    """Calls come by index, whatever order the subject lists them in."""
    calls = [{"index": 2, "id": "b", "name": "n", "arguments": "{}"}, {**ACCEPTED["calls"][0], "index": 0}]  # type: ignore[dict-item]
    observation = read_answer(json.dumps({"outcome": "accepted", "calls": calls}).encode(), 0.0, frozenset())
    assert [call[0] for call in observation.calls] == ["a", "b"]


@pytest.mark.parametrize("command", ["", "  ", "'open", "no-such-program-anywhere", "./"])
def test_a_command_that_cannot_start_is_refused_before_the_run(command: str) -> None:
    """An unusable command is one line, not a run full of crashes."""
    with pytest.raises(InputError, match="--exec"):
        parse_command(command)
