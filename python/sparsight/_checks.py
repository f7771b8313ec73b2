"""What the modules ask of the settings that they are made from, before these become JSON."""
import math
import operator


def integer(name, value, least):
    """`value` as an int, also of other integer types (NumPy's), where it is at least `least`."""
    if isinstance(value, bool) or not (isinstance(value, int) or hasattr(value, "__index__")):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if not isinstance(value, int):  # torch.compile takes what comes from operator.index() for a constant
        value = operator.index(value)
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    in_range(name, value)
    return value


def text(name, value, allowed):
    """Raises TypeError for what cannot be a name."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {allowed}, by name; got {type(value).__name__}")


def in_range(name, value):
    """Raises ValueError for numbers that JSON or C++ cannot say."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    if isinstance(value, int) and not -2**63 <= value < 2**63:
        raise ValueError(f"{name} must fit in 64 bits, got {value}")


def plain(name, value):
    """Settings as JSON can say them: numbers and arrays of other types (NumPy's) become Python's."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain(key, entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(name, entry) for entry in value]
    if not isinstance(value, (bool, int, float, str, type(None))):
        raise TypeError(f"{name} must be a number, a string or a list of them, got {value!r}")
    in_range(name, value)
    return value
