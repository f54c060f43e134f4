"""The one error that reaches a person: a line that says what, where and what to do."""


class InputError(Exception):
    """Bad input or a bad environment; the command line prints it as one line and exits 2.

    The message is written by this kit and never quotes input, so that no raw value leaves in it.
    """
