"""Checks of module settings before they are converted to JSON."""
import math
import operator


def integer(name, value, least):
    """Returns `value` as an int (NumPy integers are accepted). Raises ValueError if it is below `least`."""
    if isinstance(value, bool) or not (isinstance(value, int) or hasattr(value, "__index__")):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if not isinstance(value, int):  # only then: torch.compile treats the result of operator.index() as a constant
        value = operator.index(value)
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    in_range(name, value)
    return value


def text(name, value, allowed):
    """Raises TypeError if `value` is not a string."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {allowed}, by name; got {type(value).__name__}")


def in_range(name, value):
    """Raises ValueError for numbers that JSON or C++ cannot represent."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    if isinstance(value, int) and not -2**63 <= value < 2**63:
        raise ValueError(f"{name} must fit in 64 bits, got {value}")


def plain(name, value):
    """Converts settings to JSON types: NumPy numbers and arrays become Python numbers and lists."""
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
