"""``fragmentlab report``: notebooks in, pages out; a failure is shown, counted and leaks nothing."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fragmentlab.reports.frame.build import plan_report
from fragmentlab.reports.frame.execute import Execution
from fragmentlab.reports.frame.parameters import NOT_SHOWN
from fragmentlab.reports.frame.render import page_of, ran_line
from tests.reports.frame.notebooks import CLOSE, code, markdown, write_notebook

CANARY = "c4n4ry"
TIME_LIMIT = 240
LEAKY = f"""
import sys, warnings
warnings.warn("{CANARY}-warning")
print("{CANARY}-stderr", file=sys.stderr)
os_write = __import__("os").write(2, b"{CANARY}-kernel")
"""
FOLDER_OF_TESTS = {
    "01-good": [
        markdown("## A table of two\n\nWith *text*."),
        markdown("## What `null` means: <i>x</i> & y\n\n## A table of two"),
        code('import pandas as pd\nTable("Things", pd.DataFrame({"name": ["<b>a</b>"], "n": [1]}))'),
        code("Figure(lambda axes, theme: axes.plot([1, 2]), alt='A line from 1 to 2', caption='A line.')"),
        code("print('plain < text')"),
        code(CLOSE),
    ],
    "02-raises": [code(f"x = 1\nimport json\njson.loads('{CANARY}' * n)"), code(CLOSE)],
    "03-says-why": [code("raise ResultDoesNotHold('target differs from control in 2 rows')"), code(CLOSE)],
    "04-dies": [code("import os\nos._exit(0)"), code(CLOSE)],
    "05-has-no-end": [code("1 + 1")],
    "06-warns": [code(LEAKY), code(CLOSE)],
}


def report(*arguments, cwd, timeout=TIME_LIMIT):
    command = [sys.executable, "-m", "fragmentlab", "report", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)


def everything(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """One report of good and bad notebooks."""
    top = tmp_path_factory.mktemp("mixed")
    (top / "nb").mkdir()
    for name, cells in FOLDER_OF_TESTS.items():
        write_notebook(top / "nb", name, *cells)
    ended = report("--notebooks", "nb", "--out", "out/deep", "-p", "n=4", cwd=top)
    return ended, top / "out" / "deep"


def reason(folder, name):
    return json.loads((folder / f"{name}.ipynb").read_text("utf-8"))["metadata"]["fragmentlab"]["reason"]


def test_prints_the_index_last(mixed):
    """Standard output is the path of the index and nothing else; progress goes to standard error."""
    ended, out = mixed
    assert ended.stdout == "out/deep/index.html\n"
    assert (out / "index.html").is_file()
    assert [line for line in ended.stderr.splitlines() if not line.startswith("report: ")] == []
    assert "6 notebooks ran: 2 passed, 4 failed." in ended.stderr


def test_a_failed_notebook_makes_the_command_fail(mixed):
    """One failed notebook is exit status 1."""
    assert mixed[0].returncode == 1


@pytest.mark.parametrize("name", FOLDER_OF_TESTS)
def test_every_notebook_is_rendered_and_listed(mixed, name):
    """Passed or failed, each has a page, an executed notebook and a line on the index that says which."""
    _, out = mixed
    passed = name in ("01-good", "06-warns")
    index = (out / "index.html").read_text("utf-8")
    card = re.search(
        rf'<li class="card(?: failed)?">(?:(?!</li>).)*href="{name}.html"(?:(?!</li>).)*</li>', index, re.S
    )
    assert card and ("✓ passed" if passed else "✗ FAILED") in card[0]
    assert f"Title of {name}" in card[0] and f"What does {name} ask?" in card[0]
    page = (out / f"{name}.html").read_text("utf-8")
    assert ("This notebook failed." in page) is not passed
    assert (reason(out, name) is None) is passed


def test_failures_say_what_and_where(mixed):
    """The reason names our own message or the exception's type, and where it was raised."""
    _, out = mixed
    assert reason(out, "02-raises").startswith(
        "JSONDecodeError (its message may quote data and is not shown); cell ["
    )
    assert reason(out, "02-raises").endswith("line 3")
    assert reason(out, "03-says-why").startswith(
        "ResultDoesNotHold: target differs from control in 2 rows; cell ["
    )


def test_a_dead_kernel_has_failed(mixed):
    """A kernel that exits with 0 in the middle is a failure, whatever its cells say."""
    _, out = mixed
    assert reason(out, "04-dies") == "the kernel died"


def test_a_notebook_without_its_end_has_failed(mixed):
    """Without the closing cell's footer a notebook has not passed."""
    _, out = mixed
    assert reason(out, "05-has-no-end") == "it ended without its closing cell"


def test_standard_error_and_tracebacks_are_dropped(mixed, tmp_path):
    """What libraries, warnings and kernels print and raise is in no file and in no output of the command."""
    ended, out = mixed
    source = {name: text for name, text in everything(out).items() if CANARY in text}
    for name in ("02-raises", "06-warns"):
        for suffix in ("html", "ipynb"):
            leaks = re.findall(rf"{CANARY}[-\w]*", source.pop(f"{name}.{suffix}"))
            assert len(leaks) == (1 if name == "02-raises" else 3), "only the cell's own source holds it"
    assert not source and CANARY not in ended.stdout + ended.stderr


def test_machine_paths_and_times_are_dropped(mixed, tmp_path_factory):
    """Executed notebooks hold no path of this machine and none of papermill's notes."""
    _, out = mixed
    for text in everything(out).values():
        assert str(tmp_path_factory.getbasetemp()) not in text
        assert sys.prefix not in text and os.path.expanduser("~/") not in text
        assert "papermill" not in text and "start_time" not in text and "execution_state" not in text


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("name", ["index", "01-good", "02-raises"])
def test_pages_are_self_contained(mixed, name):
    """No script and no address outside the page: only data and links to the report's own files."""
    page = Page((mixed[1] / f"{name}.html").read_text("utf-8"))
    assert not [tag for tag, _ in page.found if tag in ("script", "iframe", "object", "embed")]
    for tag, attributes in page.found:
        for key in ("src", "srcset", "href"):
            value = attributes.get(key) or ""
            if value.startswith(("data:", "#")) or tag == "a":
                continue
            assert not value, (tag, key)
        assert not [key for key in attributes if key.startswith("on")]


def test_pages_are_accessible(mixed):
    """A page has a language, one h1, a skip link, alt text on each image and captions on each table."""
    text = (mixed[1] / "01-good.html").read_text("utf-8")
    found = Page(text).found
    assert ("html", {"lang": "en"}) in found
    assert sum(tag == "h1" for tag, _ in found) == 1
    assert [attributes["alt"] for tag, attributes in found if tag == "img"] == ["A line from 1 to 2"]
    assert text.count("<table") == text.count("<caption>") == 1
    assert '<a class="skip" href="#content">' in text and 'id="content"' in text
    assert "&lt;b&gt;a&lt;/b&gt;" in text and "plain &lt; text" in text
    assert len(text) < 280_000


def test_the_list_of_sections_leads_to_them(mixed):
    """Each link inside a page has its target, once, also for equal titles and titles with markup."""
    text = (mixed[1] / "01-good.html").read_text("utf-8")
    found = Page(text).found
    links = [
        attributes["href"][1:] for tag, attributes in found if attributes.get("href", "").startswith("#")
    ]
    targets = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(links) == 4
    assert sorted(targets) == sorted({*links, "show-code"})
    assert ">What null means: &lt;i&gt;x&lt;/i&gt; &amp; y</a>" in text


def test_pages_show_declared_parameters_only(mixed):
    """A page and the index print each declared parameter's value, and no other."""
    for name in ("01-good", "index"):
        text = (mixed[1] / f"{name}.html").read_text("utf-8")
        names = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text)
        assert set(names) == {("n", "4")}


def good_notebook(folder, name="01-good", *cells):
    folder.mkdir(exist_ok=True)
    return write_notebook(folder, name, *cells, code(CLOSE))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--only", "07"], "--only takes a number or a name of: 01-good"),
        (["-p", "m=1"], "unknown parameter m"),
        (["-p", f"n={CANARY}"], "parameter n must be a whole number"),
        (["-p", "n"], "-p takes name=value"),
        (["--notebooks", "missing"], "no folder of notebooks at missing"),
        (["--notebooks", "empty"], "no notebook named like"),
        (["--notebooks", "broken"], "01-broken.ipynb is not a readable notebook"),
        (["--out", "nb/01-good.ipynb"], "cannot write to the output folder"),
        (["--out", ""], "--out needs a folder"),
        (["--out", "/proc/reports"], "cannot write to the output folder"),
        (["--out", "nb/01-good.ipynb/\x1b[31mdeep"], r"\x1b[31mdeep"),
    ],
)
def test_bad_input_is_one_line(tmp_path, arguments, told):
    """Wrong options end with status 2 and one clear line, before any kernel starts."""
    good_notebook(tmp_path / "nb")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "01-broken.ipynb").write_text('{"cells": 3}')
    given = [] if "--notebooks" in arguments else ["--notebooks", "nb"]
    ended = report(*given, *arguments, cwd=tmp_path)
    assert ended.returncode == 2 and ended.stdout == ""
    assert told in ended.stderr and ended.stderr.count("\n") == 1 and CANARY not in ended.stderr


def test_parameters_reach_the_kernel_with_their_type(tmp_path):
    """A text parameter that looks like a number stays text; a path is used but not printed."""
    declared = 'label: str = ""\nwhere: str = ""\nother: int = 1'
    check = code(f"assert p.label == '007' and p.other == 2 and p.where.endswith('{CANARY}')")
    (tmp_path / "nb").mkdir()
    write_notebook(tmp_path / "nb", "01-typed", check, code(CLOSE), parameters=declared)
    given = ["-p", "label=007", "-p", f"where={tmp_path}/{CANARY}", "-p", "other=2"]
    ended = report("--notebooks", "nb", "--out", "out", *given, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    for text in [*everything(tmp_path / "out").values(), ended.stdout, ended.stderr]:
        assert str(tmp_path) not in text
    assert NOT_SHOWN in (tmp_path / "out" / "index.html").read_text("utf-8")


def test_only_selects_and_says_so(tmp_path):
    """``--only`` takes numbers and names, keeps the order and is told on the index."""
    for name in ("01-a", "02-b", "03-c"):
        good_notebook(tmp_path / "nb", name)
    chosen = plan_report(str(tmp_path / "nb"), ["03-c", "01"], ["n=5"]).jobs
    assert [job.notebook.name for job in chosen] == ["01-a", "03-c"]
    page = page_of(Execution(chosen[0], None, 1.0, {"cells": []}), {})
    assert "1 of 3 notebooks ran" in ran_line([page], 3)


@pytest.mark.parametrize(
    "how",
    [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL],
    ids=["interrupted", "cancelled", "hung up", "killed"],
)
def test_nothing_outlives_the_command(tmp_path, monkeypatch, how):
    """A report that is stopped ends its kernels: the connection that one holds is closed. What a killed one
    leaves is a folder that the next one removes and mentions."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    killed = how == signal.SIGKILL
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(TIME_LIMIT)
        hold = f"import socket\nheld = socket.create_connection({server.getsockname()})\nheld.recv(1)"
        (tmp_path / "nb").mkdir()
        write_notebook(tmp_path / "nb", "01-holds", code(hold), code(CLOSE))
        command = [sys.executable, "-m", "fragmentlab", "report", "--notebooks", "nb", "--out", "out"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            connection, _ = server.accept()
            process.send_signal(how)
            _, told = process.communicate(timeout=TIME_LIMIT)
    with connection:
        connection.settimeout(TIME_LIMIT)
        assert connection.recv(1) == b""
    if not killed:
        assert process.returncode == 130 and told.endswith("fragmentlab report: interrupted\n")
    (scratch,) = tmp_path.glob("fragmentlab-*")
    assert len(list(scratch.iterdir())) == killed
    write_notebook(tmp_path / "nb", "01-holds", code(CLOSE))
    again = report("--notebooks", "nb", "--out", "out", cwd=tmp_path)
    assert again.returncode == 0 and again.stderr.count("removed what an interrupted process left") == killed
    assert list(scratch.iterdir()) == []


def test_what_cannot_be_saved_is_said(tmp_path):
    """A notebook whose result the system does not take is named as that, not as a dead kernel."""
    good_notebook(tmp_path / "nb", "01-large", code(f"print('x' * {1 << 20})"))
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))
    command = [sys.executable, "-m", "fragmentlab", "report", "--notebooks", "nb", "--out", "out"]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=TIME_LIMIT, preexec_fn=limit
    )
    assert ended.returncode == 1
    assert "FAILED (what it computed cannot be saved: File too large)" in ended.stderr


def test_a_page_that_cannot_be_written_is_named(tmp_path):
    """Where a page cannot be written the command says so in one line and leaves no half of it."""
    good_notebook(tmp_path / "nb")
    (tmp_path / "out" / "01-good.html").mkdir(parents=True)
    ended = report("--notebooks", "nb", "--out", "out", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith("fragmentlab report: out/01-good.html cannot be")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["01-good.html", "01-good.ipynb"]


# The browser: any request that leaves the page would meet the proxy, which counts them.

BROWSERS_OWN = re.compile(r"\b(clients\d*|accounts|update|optimizationguide-pa)\.google(apis)?\.com\b")
needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")


class CountingProxy:
    """Accepts connections on loopback, notes the first line of each and answers nothing."""

    def __enter__(self):
        self.requests, self.socket = [], socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()
        return self

    def _serve(self):
        while True:
            connection, _ = self.socket.accept()
            with connection:
                connection.settimeout(5)
                line = connection.recv(200).split(b"\r\n")[0].decode("latin-1")
                if line == "STOP":
                    return
                self.requests.append(line)

    def __exit__(self, *_):
        with socket.create_connection(self.socket.getsockname()) as connection:
            connection.sendall(b"STOP\r\n")
        self.thread.join()
        self.socket.close()

    def of_pages(self):
        """The requests that the browser did not make for itself."""
        return [line for line in self.requests if not BROWSERS_OWN.search(line)]

    @property
    def option(self):
        return f"--proxy-server=127.0.0.1:{self.socket.getsockname()[1]}"


def browse(page, proxy, profile):
    switches = "headless no-sandbox disable-gpu no-first-run disable-background-networking disable-sync"
    command = ["chromium", *[f"--{switch}" for switch in switches.split()], "--disable-component-update"]
    command += [f"--user-data-dir={profile}", proxy.option, "--proxy-bypass-list=<-loopback>"]
    command += ["--virtual-time-budget=3000", "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=True).stdout


@needs_chromium
def test_pages_open_without_network(mixed, tmp_path):
    """A browser shows a page with its figure's alt text and asks the network for nothing."""
    with CountingProxy() as proxy:
        shown = browse(mixed[1] / "01-good.html", proxy, tmp_path / "profile")
        assert proxy.of_pages() == []
        bad = tmp_path / "bad.html"
        bad.write_text('<img src="http://example.invalid/x.png">')
        browse(bad, proxy, tmp_path / "profile")
        assert proxy.of_pages() == ["GET http://example.invalid/x.png HTTP/1.1"], "the proxy sees requests"
    assert 'alt="A line from 1 to 2"' in shown and "Title of 01-good" in shown


def stream_with_canaries() -> bytes:
    """A refused stream with a canary in every field that text can stand in."""
    c = CANARY

    def chunk(*fragments, **more):
        delta = {
            "role": "assistant",
            "content": f"{c}-content",
            "tool_calls": list(fragments),
            "reasoning": f"{c}-why",
        }
        return {
            "id": f"{c}-response",
            "model": f"{c}-model",
            "choices": [{"index": 0, "delta": delta, **more}],
        }

    def fragment(index, call_id, name, arguments):
        function = {"name": name, "arguments": arguments}
        return {"index": index, "id": call_id, "type": "function", "function": function, f"{c}-key": 1}

    chunks = [
        chunk(fragment(0, f"{c}-id", f"{c}-name", f'{{"{c}-argument": "{c}')),
        chunk(fragment(0, None, None, f'-value"}} {c}-broken')),
        chunk(fragment(0, f"{c}-other-id", None, "")),
        chunk(fragment(1, None, f"{c}-name", "{}"), finish_reason=f"{c}-finish"),
    ]
    events = [f"event: {c}-event\nid: {c}-event-id\ndata: {json.dumps(item)}\n\n" for item in chunks]
    return "".join(
        [f": {c}-comment\n\n", *events, f"data: {{{c}-json\n\n", f"event: error\ndata: {c}\n\n"]
    ).encode()


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "batch"])
def test_no_canary_leaves(tmp_path, root, is_file):
    """Whatever a stream, its path, its batch and the given tools hold, no page or message repeats it."""
    if is_file:
        path = tmp_path / f"{CANARY}.sse"
        path.write_bytes(stream_with_canaries())
        given = ["-p", f"file={path}", "-p", f"tools={CANARY}-tool,{CANARY}-name"]
    else:
        given = ["-p", f"batch={batch_with_canaries(tmp_path / CANARY)}", "-p", "stream="]
    ended = report("--out", "out", "--only", "01", *given, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    for name, text in {
        **everything(tmp_path / "out"),
        "stdout": ended.stdout,
        "stderr": ended.stderr,
    }.items():
        assert CANARY not in text, name
    assert "identity.conflict" in (tmp_path / "out" / "01-investigate-a-stream.html").read_text("utf-8")


def batch_with_canaries(folder: Path) -> Path:
    from fragmentlab.corpus.batches import write_batch
    from fragmentlab.corpus.streams import Stream, stream_id

    body, c = stream_with_canaries(), CANARY
    names = {"provider": f"{c}-p", "server": f"{c}-s", "model": f"{c}-m"}
    stream = Stream(stream_id(body), body, **names, tools=(f"{c}-tool",), pair=f"{c}-pair")
    return write_batch(
        folder, [stream], name=f"{c}-batch", evidence="captured", provenance=c, licence=c, scrubbed=False
    )


def test_a_missing_file_is_named_by_parameter_only(tmp_path):
    """A path that cannot be read fails the notebook; the page says why without the path."""
    ended = report("--out", "out", "--only", "01", "-p", f"file={tmp_path}/{CANARY}", cwd=tmp_path)
    assert ended.returncode == 1
    for text in [*everything(tmp_path / "out").values(), ended.stdout, ended.stderr]:
        assert CANARY not in text
    assert "(as given): is not there" in (tmp_path / "out" / "index.html").read_text("utf-8")
