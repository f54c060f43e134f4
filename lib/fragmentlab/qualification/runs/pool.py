"""Cases through a subject, in this process or in several; rows come back in the order of the cases."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from itertools import islice
from multiprocessing.connection import wait
from typing import Any

from fragmentlab.errors import InputError
from fragmentlab.qualification.choose import Choice
from fragmentlab.qualification.runs.rows import Rows, rows_of
from fragmentlab.qualification.runs.sources import Item
from fragmentlab.subjects.interface import Subject

_CHUNK = 16
_CHUNKS_AHEAD = 3

_subject: Subject | None = None


def observed(items: Iterable[Item], choice: Choice, workers: int) -> Iterator[Rows]:
    """Yield the rows of each item, in order. A subject that carries state runs in this process alone.

    Raises InputError where a worker process is lost.
    """
    subject = choice.build()
    with closing(subject):
        if workers == 1 or subject.ordered:
            for item in items:
                yield rows_of(item, subject.observe(item.stream))
            return
    yield from _in_processes(iter(items), choice, workers)


def _in_processes(items: Iterator[Item], choice: Choice, workers: int) -> Iterator[Rows]:
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(choice,))
    waiting: deque[Future[list[Rows]]] = deque()
    try:
        while True:
            while len(waiting) < workers * _CHUNKS_AHEAD and (chunk := list(islice(items, _CHUNK))):
                waiting.append(pool.submit(_observe, chunk))
            if not waiting:
                break
            yield from waiting.popleft().result()
        pool.shutdown()
    except BrokenProcessPool:
        raise InputError("a worker process ended unexpectedly; try again with fewer --workers") from None
    finally:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        _let_go(pool)
        pool.shutdown(cancel_futures=True)


def _let_go(pool: ProcessPoolExecutor) -> None:
    """Stop the pool's own thread from writing cases to workers that have ended.

    This process holds the reading end too, so that where the pipe is full such a write never ends by itself
    (python/cpython#94777, mended in later versions only): Ctrl-C, a full disk or a lost worker would hang.
    """
    queue = getattr(pool, "_call_queue", None)
    if queue is not None:
        with contextlib.suppress(OSError):
            queue._reader.close()


def _start(choice: Choice) -> None:
    global _subject
    # Ctrl-C is the parent's to handle; it then ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_follow_parent, daemon=True).start()
    _subject = choice.build()


def _follow_parent() -> None:
    parent: Any = multiprocessing.parent_process()
    wait([parent.sentinel])
    _leave()


def _stop(signum: int, frame: object) -> None:
    # The pool sends it again where another worker has ended first.
    signal.signal(signum, signal.SIG_IGN)
    _leave()


def _leave() -> None:
    if _subject is not None:
        _subject.close()
    os._exit(1)


def _observe(items: list[Item]) -> list[Rows]:
    assert _subject is not None
    return [rows_of(item, _subject.observe(item.stream)) for item in items]
