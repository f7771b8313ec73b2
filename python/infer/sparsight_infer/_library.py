"""The C interface (include/sparsight/infer.h) in ctypes."""
import ctypes
import pathlib
from ctypes import POINTER, c_char_p, c_float, c_int, c_int64, c_size_t, c_ubyte, c_void_p

ABI = 1


class Error(Exception):
    """What the library refused, in one line. status: a sparsight_infer_status."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Info(ctypes.Structure):
    _fields_ = [(name, c_int64) for name in (
        "abi", "channels", "height", "width", "classes", "features", "decisions", "weight_bytes", "run_bytes",
        "independent_classes", "takes_images", "decodes_images")] + [
        ("instruction_set", c_char_p), ("pack_cache", c_int64)]


class Result(ctypes.Structure):
    _fields_ = [("struct_bytes", c_size_t), ("images", c_int64), ("logits", c_void_p), ("probabilities", c_void_p),
                ("features", c_void_p)]


class RawRouting(ctypes.Structure):
    _fields_ = [("layer", c_char_p)] + [(name, c_int64) for name in (
        "experts", "images", "tokens_per_image", "prefix_tokens", "grid_height", "grid_width", "assignments")] + [
        ("token", POINTER(c_int64)), ("expert", POINTER(c_int64)), ("gate", POINTER(c_float)), ("kept", POINTER(c_ubyte))]


OnRouting = ctypes.CFUNCTYPE(c_int, c_void_p, c_int64, POINTER(RawRouting))

ARGUMENTS = {
    "open": [c_char_p, c_int64, POINTER(c_void_p)],
    "open_memory": [c_char_p, c_size_t, POINTER(c_void_p)],
    "close": [c_void_p],
    "get_info": [c_void_p, POINTER(Info), c_size_t],
    "class_name": [c_void_p, c_int64],
    "open_session": [c_void_p, POINTER(c_void_p)],
    "close_session": [c_void_p],
    "set_threads": [c_void_p, c_int64],
    "set_on_routing": [c_void_p, OnRouting, c_void_p],
    "classify_pixels": [c_void_p, c_void_p, POINTER(c_int64), POINTER(Result)],
    "classify_image": [c_void_p, c_void_p, c_int64, c_int64, c_int64, c_int64, POINTER(Result)],
    "classify_encoded": [c_void_p, c_char_p, c_size_t, POINTER(Result)],
    "get_routing": [c_void_p, c_int64, POINTER(RawRouting), c_size_t],
    "last_error": [],
    "version": [],
}


def load():
    library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libsparsight_infer.so")))
    for name, arguments in ARGUMENTS.items():
        function = getattr(library, "sparsight_infer_" + name)
        function.argtypes = arguments
        function.restype = c_char_p if name in ("class_name", "last_error", "version") else c_int
    return library


LIBRARY = load()


def call(name, *arguments):
    """Raises Error unless the function succeeds."""
    status = getattr(LIBRARY, "sparsight_infer_" + name)(*arguments)
    if status != 0:
        raise Error(status, LIBRARY.sparsight_infer_last_error().decode())


def version():
    return LIBRARY.sparsight_infer_version().decode()
