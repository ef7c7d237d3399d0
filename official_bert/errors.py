"""The one exception that means "the input is at fault, not the program"."""


class InputError(ValueError):
    """Something the user gave cannot be used.

    Its message says what must hold, what was received and what to do; where a
    file is at fault it starts with ``FILE:LINE:``. Commands print the message
    alone, without a traceback, and exit with status 1.
    """
