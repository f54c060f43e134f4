"""Whatever a stream is put into, import gives it back: the same outcome, faults and null continuations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragmentlab.corpus.batches import open_batch
from fragmentlab.corpus.importing.streams import Summary, import_streams
from fragmentlab.corpus.streams import Stream
from fragmentlab.corpus.vectors import load_vectors, vector_paths
from fragmentlab.files import data_folder
from fragmentlab.wire.events import payloads
from fragmentlab.wire.protocols import CHAT, protocol_of
from tests.corpus.importing.wrappers import EXACT, LISTS, LOGS, PREFIXES, SINGLE

Facts = tuple[str, tuple[str, ...], int]
STEP = 23
"""Each kind is tried with every so many streams, beginning elsewhere than the kind before."""
NO_EVENT = {"completion/truncated-after-a-comment"}
"""A stream without one event is never kept."""
NO_LINE_END = {"framing/json-single-quotes"}
"""What a log cannot show: whether its last line was cut, and an event that looks like a printed object."""


@cache
def streams() -> list[tuple[str, bytes]]:
    """Every vector, and the recorded streams that the kit ships."""
    found = []
    for path in vector_paths([data_folder("vectors")]):
        found += [(vector.id, vector.stream.body) for vector in load_vectors(path).vectors]
    found += [(stream.id, stream.body) for stream in open_batch("captured-local").streams()]
    return [(name, body) for name, body in found if body.strip() and name not in NO_EVENT]


def told(stream: Stream) -> Facts:
    result = stream.assemble(diagnose=True)
    categories = tuple(fault.category for fault in result.faults)
    return result.outcome, categories, result.counts["null_continuations"]


def imported(folder: Path, name: str, content: bytes) -> list[Facts]:
    path = folder / name
    path.write_bytes(content)
    return [told(item.stream) for item in import_streams([str(path)], Summary())]


def is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_chat(body: bytes) -> bool:
    return protocol_of(body) == CHAT


KINDS = EXACT | SINGLE


@pytest.mark.parametrize("kind", KINDS)
def test_a_container_changes_nothing(tmp_path, kind):
    """One body in a container that keeps bytes is the stream that it was."""
    name, wrap = KINDS[kind]
    for which, body in streams()[list(KINDS).index(kind) :: STEP]:
        if is_text(body) and is_chat(body):
            assert imported(tmp_path, name, wrap([body])) == [told(Stream("s", body))], which


@pytest.mark.parametrize("kind", LOGS)
def test_a_log_changes_nothing(tmp_path, kind):
    """Whatever a logger writes before each line is taken away again."""
    name, wrap = LOGS[kind]
    for which, body in streams()[list(LOGS).index(kind) :: STEP]:
        if is_text(body) and is_chat(body) and body.endswith(b"\n") and which not in NO_LINE_END:
            assert imported(tmp_path, name, wrap([body])) == [told(Stream("s", body))], which


def chunk_texts(body: bytes, response: int) -> list[str] | None:
    """Return the chunks of a stream as a provider sends them: one id, and the role in the first."""
    chunks = []
    for data in payloads(body, "sse"):
        try:
            value = json.loads(data)
        except ValueError:
            continue
        if not isinstance(value, dict) or json.dumps(value).encode() != data.replace(b'":', b'": ').replace(
            b'":  ', b'": '
        ):
            return None
        chunks.append(value | {"id": f"response-{response}"})
    try:
        chunks[0]["choices"][0]["delta"]["role"] = "assistant"
    except (LookupError, TypeError, AttributeError):
        return None
    return [json.dumps(chunk) for chunk in chunks]


@cache
def responses() -> list[bytes]:
    return [body for _, body in streams() if is_chat(body) and chunk_texts(body, 0)]


@pytest.mark.parametrize("kind", LISTS)
def test_chunks_of_one_or_two_responses_are_told_apart(tmp_path, kind):
    """Lists and logs of chunk objects give as many streams as there were responses, each unchanged."""
    name, wrap = LISTS[kind]
    found = responses()
    for number in range(list(LISTS).index(kind), len(found), STEP):
        pair = [found[number], found[(number * 7 + 3) % len(found)]]
        for bodies in (pair[:1], pair):
            texts = [chunk_texts(body, at) or [] for at, body in enumerate(bodies)]
            lines = ["".join(f"{text}\n" for text in each).encode() for each in texts]
            wanted = [told(Stream("s", body, framed="jsonl")) for body in lines]
            assert imported(tmp_path, name, wrap(texts).encode()) == wanted, number


@pytest.mark.parametrize("kind", EXACT)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_as_many_responses_come_out_as_went_in(tmp_path, kind, data):
    """Several bodies in one container, equal ones too, are as many streams, in their order."""
    name, wrap = EXACT[kind]
    # A cell with one event alone may be a row of a table of events.
    usable = [body for body in responses() if is_text(body) and body.count(b"data:") > 2]
    bodies = data.draw(st.lists(st.sampled_from(usable), min_size=2, max_size=4))
    assert imported(tmp_path, name, wrap(bodies)) == [told(Stream("s", body)) for body in bodies]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    prefix=st.one_of(
        st.sampled_from(list(PREFIXES.values())),
        st.text(
            st.characters(codec="ascii", categories=["Lu", "Ll", "Nd", "Ps", "Pe"]), min_size=1, max_size=30
        )
        .map(lambda text: text.replace("{", "(").replace("[", "("))
        .map(lambda text: f"{text}%d | "),
    ),
    noise=st.lists(st.sampled_from(["INFO: started", "", "200 OK", "x" * 40]), max_size=3),
)
def test_any_prefix_is_taken_away(tmp_path, prefix, noise):
    """A prefix of any characters with a counter in it is removed, lines of another form dropped."""
    from tests.corpus.importing.wrappers import prefixed

    body = responses()[5]
    content = "\n".join([*noise, ""]).encode() + prefixed(prefix)([body])
    assert imported(tmp_path, "a.log", content) == [told(Stream("s", body))]


def interleaved(texts: Sequence[Sequence[str]]) -> list[str]:
    longest = max(map(len, texts))
    return [each[at] for at in range(longest) for each in texts if at < len(each)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_responses_that_ran_at_once_are_told_apart(tmp_path, data):
    """Chunks of two responses in turns in one log are two streams."""
    usable = [body for body in responses() if len(chunk_texts(body, 0) or ()) > 1]
    bodies = data.draw(st.lists(st.sampled_from(usable), min_size=2, max_size=3))
    texts = [chunk_texts(body, at) or [] for at, body in enumerate(bodies)]
    log = "".join(f'{{"level": 20, "chunk": {text}}}\n' for text in interleaved(texts))
    lines = ["".join(f"{text}\n" for text in each).encode() for each in texts]
    wanted = [told(Stream("s", body, framed="jsonl")) for body in lines]
    assert imported(tmp_path, "a.log", log.encode()) == wanted


def test_a_response_whose_ids_change_stays_one(tmp_path):
    """An id of its own in each chunk, or another one from the middle on, separates nothing."""
    texts = chunk_texts(responses()[5], 0) or []
    wanted = [told(Stream("s", "".join(f"{text}\n" for text in texts).encode(), framed="jsonl"))]
    for of_chunk in (lambda at: f"id-{at}", lambda at: f"id-{at // 2}", lambda at: "" if at == 0 else "id"):
        changed = [text.replace("response-0", of_chunk(at)) for at, text in enumerate(texts)]
        log = "".join(f'{{"level": 20, "chunk": {text}}}\n' for text in changed)
        assert imported(tmp_path, "a.log", log.encode()) == wanted


def test_a_role_in_each_chunk_begins_nothing(tmp_path):
    """Servers that repeat the role, with one id or with an id of its own in each chunk, send one response."""
    texts = chunk_texts(responses()[5], 0) or []
    for of_chunk in (lambda at: "id", lambda at: f"id-{at}"):
        chunks = [json.loads(text.replace("response-0", of_chunk(at))) for at, text in enumerate(texts)]
        for chunk in chunks:
            chunk["choices"][0]["delta"]["role"] = "assistant"
        lines = [json.dumps(chunk) for chunk in chunks]
        wanted = told(Stream("s", "".join(f"{line}\n" for line in lines).encode(), framed="jsonl"))
        log = "".join(f'{{"level": 20, "chunk": {line}}}\n' for line in lines)
        assert imported(tmp_path, "a.log", log.encode()) == [wanted]


def test_what_a_key_given_twice_says_survives(tmp_path):
    """A chunk object in a log that gives a deciding key twice is refused for it; numbers keep their form."""
    texts = chunk_texts(responses()[5], 0) or []
    twice = texts[0].replace('"index": 0', '"index": 0, "index": 0', 1)
    huge = texts[0].replace('"index": 0', '"index": 1e0', 1)
    for first, category in ((twice, "event.duplicate_key"), (huge, "protocol.multiple_choices")):
        for kind, (name, wrap) in LISTS.items():
            (found,) = imported(tmp_path, name, wrap([[first, *texts[1:]]]).encode())
            assert found[1][0] == category, kind
