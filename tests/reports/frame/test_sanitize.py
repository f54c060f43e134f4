"""What stays of an executed notebook."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragmentlab
from fragmentlab.disclosure import only_own_words
from fragmentlab.reports.frame.sanitize import (
    FOOTER_TYPE,
    OWN_EXCEPTIONS,
    reached_footer,
    sanitized,
    without_outputs,
)

SECRET = "c4n4ry"


def notebook(*outputs, metadata=None, tags=()):
    cell = {
        "cell_type": "code",
        "id": "a",
        "source": f"x = '{SECRET}'" if "injected-parameters" in tags else "x",
        "metadata": {"tags": list(tags), "papermill": {"exception": SECRET}, "execution": SECRET},
        "outputs": list(outputs),
        "execution_count": 2,
    }
    return {"cells": [cell], "metadata": metadata or {}, "nbformat": 4, "nbformat_minor": 5}


def error(name, value, traceback=()):
    return {"output_type": "error", "ename": name, "evalue": value, "traceback": list(traceback)}


def only_output(content):
    [output] = content["cells"][0]["outputs"]
    return output


@given(st.text(), st.text())
def test_foreign_exceptions_keep_their_type_only(name, value):
    """Neither the message nor a frame's source of a library's exception stays, whatever it is called."""
    frame = f"File /home/{SECRET}/lib/json.py:355, in decode({SECRET})\n    355 raise {SECRET}"
    clean = sanitized(notebook(error(f"{name}{SECRET} ", value + SECRET, [frame, value])), {})
    assert SECRET not in json.dumps(clean)


def test_frames_are_named_by_line_and_our_own_files():
    """A cell's line and our own modules are named; other files and odd paths are not."""
    frames = [
        f"\x1b[31mCell In[4], line 2\x1b[39m\n {SECRET}",
        f"File /x/{SECRET}/lib/fragmentlab/reports/frame/render.py:33, in f({SECRET})",
        f"File /x/fragmentlab/{SECRET}.py:3, in g()",
        "File /usr/lib/python3/json/decoder.py:355, in decode",
    ]
    told = only_output(sanitized(notebook(error("ValueError", SECRET, frames)), {}))["traceback"]
    assert told == [
        "ValueError (its message may quote data and is not shown)",
        "  cell [4], line 2",
        "  fragmentlab/reports/frame/render.py, line 33",
    ]


def test_own_messages_stay_without_what_was_given():
    """Messages of this kit stay, bounded and visible, with paths replaced."""
    message = f"/tmp/{SECRET}/a.sse cannot be read: \x1b[31m" + " cannot be read" * 200
    output = error("InputError", message)
    told = only_output(sanitized(notebook(output), {}))
    assert told["evalue"].startswith("(as given) cannot be read: ") and "\x1b" not in told["evalue"]
    assert len(told["evalue"]) <= 600


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("{}/a b.har cannot be read", "(as given) cannot be read"),
        ("{}.har cannot be read", "(as given) cannot be read"),
        ("/data/{}/x cannot be read", "(as given) cannot be read"),
        ("batch {} holds nothing to replay", "batch (as given) holds nothing to replay"),
        ("{}-1.parquet, line 3: not JSON", "(as given), line 3: not JSON"),
        ("a scenario named {} is missing", "a scenario named (as given) is missing"),
        ("/home/{}/lib/notebooks is missing", "(as given) is missing"),
        ("stream s-{} is missing", "stream (as given) is missing"),
        ("1 of 3: no {} in /tmp/{}/x, '{}.json'.", "1 of 3: no (as given) in (as given), '(as given)'."),
        ("identity.conflict: 12,000 of 13.5 % {}", "identity.conflict: 12,000 of 13.5 % (as given)"),
        ("No such file or directory", "No such file or directory"),
    ],
)
def test_only_the_kits_own_words_stay(message, told):
    """Of a message stays what the kit says; what came from elsewhere goes, wherever it stands."""
    output = error("InputError", message.replace("{}", SECRET))
    assert only_output(sanitized(notebook(output), {}))["evalue"] == told


def test_no_message_of_the_kit_loses_a_word():
    """What the kit's source says in a message is never taken for a name of a person's."""
    said = [
        text.value
        for path in Path(fragmentlab.__file__).parent.rglob("*.py")
        for raised in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(raised, ast.Call) and getattr(raised.func, "id", "") in OWN_EXCEPTIONS
        for text in ast.walk(raised)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
    ]
    assert len(said) > 200
    assert [text for text in said if only_own_words(text) != text] == []


@pytest.mark.parametrize("name", ["OSError", "FileNotFoundError", "PermissionError"])
def test_the_system_is_quoted_without_the_path(name):
    """An error of the system keeps what the system calls it: a full disk is told from a fault."""
    output = error(name, f"[Errno 28] No space left on device: '/x/{SECRET}'")
    assert only_output(sanitized(notebook(output), {}))["evalue"] == "No space left on device"


def test_metadata_and_standard_error_go():
    """Papermill's notes, kernel times and standard error are dropped; what cells show stays."""
    shown = {"output_type": "display_data", "data": {"text/plain": "kept"}, "metadata": {"where": SECRET}}
    loud = {"output_type": "stream", "name": "stderr", "text": SECRET}
    clean = sanitized(notebook(shown, loud, metadata={"papermill": {"input_path": SECRET}}), {})
    assert SECRET not in json.dumps(clean)
    assert only_output(clean)["data"] == {"text/plain": "kept"}


def test_unknown_output_types_go():
    """Scripts and widgets are not kept."""
    script = {"output_type": "display_data", "data": {"application/javascript": SECRET}, "metadata": {}}
    assert sanitized(notebook(script), {})["cells"][0]["outputs"] == []


def test_injected_parameters_are_replaced():
    """The cell that papermill adds holds only what may be printed."""
    clean = sanitized(notebook(tags=["injected-parameters"]), {"file": "given, not shown", "n": "3"})
    assert clean["cells"][0]["source"] == "# Parameters\n# file: given, not shown\n# n: 3"


def test_the_footer_must_be_in_the_last_cell():
    """Only an output of the last code cell proves that the end was reached."""
    footer = {"output_type": "execute_result", "data": {FOOTER_TYPE: {"complete": True}}, "metadata": {}}
    done = notebook(footer)
    assert reached_footer(done)
    assert not reached_footer({**done, "cells": [*done["cells"], notebook()["cells"][0]]})
    assert not reached_footer(without_outputs(done)) and not reached_footer({"cells": []})
