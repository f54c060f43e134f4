"""What is put to the test, behind one interface: a stream in, an observation out.

``AssemblerSubject`` is this kit's assembler under a rule table, ``EngineSubject`` anything else that has its
``assemble`` function, ``CommandSubject`` anyone's gateway in any language (``--exec``).
"""

from fragmentlab.subjects.assembler import AssemblerSubject, EngineSubject
from fragmentlab.subjects.command import CommandSubject, parse_command
from fragmentlab.subjects.interface import FAILED, FAILURES, Observation, Subject
from fragmentlab.subjects.process import Bounds

__all__ = [
    "FAILED",
    "FAILURES",
    "AssemblerSubject",
    "Bounds",
    "CommandSubject",
    "EngineSubject",
    "Observation",
    "Subject",
    "parse_command",
]
