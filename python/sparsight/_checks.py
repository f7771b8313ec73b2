"""What the modules ask of the settings that they are made from, before these become JSON."""
import math
import operator


def integer(name, value, least):
    """`value` as an int, also of other integer types (NumPy's), where it is at least `least`."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def finite(settings):
    """Raises ValueError for numbers that JSON cannot say."""
    for name, value in settings.items():
        if isinstance(value, dict):
            finite(value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")
