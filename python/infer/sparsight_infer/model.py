"""Models, what they answer, and which experts they used. Letters: B images, C channels, H height, W width, K classes."""
import builtins
import ctypes
import os
import threading
import warnings
import weakref
from typing import NamedTuple

import numpy

from ._library import LIBRARY, Error, Info, OnRouting, RawRouting, Result, call


class Guess(NamedTuple):
    name: str
    probability: float
    label: int


class Routing(NamedTuple):
    """A decision. Assignment a is of token[a] (of image token[a] // tokens_per_image) to expert[a] with gate[a]."""
    layer: str
    experts: int
    images: int
    tokens_per_image: int
    prefix_tokens: int  # leading tokens that are not patches
    grid: tuple  # (height, width) of the patches; (0, 0) where tokens have no grid
    token: numpy.ndarray
    expert: numpy.ndarray
    gate: numpy.ndarray
    kept: numpy.ndarray  # False for what the experts' capacity dropped

    def experts_used(self, image=0):
        """{expert: share of the image's assignments}, the busiest first."""
        mine = self.expert[self.kept & (self.token // self.tokens_per_image == image)]
        counts = numpy.bincount(mine, minlength=self.experts)
        return {int(e): float(counts[e] / len(mine)) for e in numpy.argsort(-counts, kind="stable") if counts[e] > 0}


ALL_EXPERTS = -1
PACK_CACHE = -1 << 62  # added to the number of experts


def open(model, threads=1, kept_experts=None, pack_cache=False):
    """A frozen model from its path, or from its bytes.

    threads: how many each answer is computed on. kept_experts: of a model from its path, reads an expert's weights when
    an image chooses it, and keeps so many in memory; None: all are read now. pack_cache: of a model from its path,
    keeps the weights that are read now, packed for this CPU, in a file beside it, which later calls map.
    """
    return Model(model, threads, kept_experts, pack_cache)


class Model:
    """May be used from any number of threads, each of which has its own memory and its own last routing."""

    def __init__(self, model, threads=1, kept_experts=None, pack_cache=False):
        handle = ctypes.c_void_p()
        if isinstance(model, (bytes, bytearray, memoryview)):
            if pack_cache:
                raise ValueError("pack_cache is for models from a path; bytes have no folder")
            if kept_experts is not None:
                raise ValueError("kept_experts is for models from a path; one from bytes has all experts in memory")
            content = bytes(model)
            call("open_memory", content, len(content), ctypes.byref(handle))
        else:
            kept = ALL_EXPERTS if kept_experts is None else kept_experts
            if pack_cache:
                kept = min(kept, 1 << 32) + PACK_CACHE
            call("open", os.fsencode(model), kept, ctypes.byref(handle))
        self._handle = handle
        weakref.finalize(self, LIBRARY.sparsight_infer_close, handle)
        self._info = Info()
        call("get_info", handle, ctypes.byref(self._info), ctypes.sizeof(self._info))
        if self._info.pack_cache < 0:
            warnings.warn(f"packed weights cannot be kept beside {os.fsdecode(model)}", RuntimeWarning, stacklevel=3)
        self._threads = threads
        self._local = threading.local()
        self.classes = [LIBRARY.sparsight_infer_class_name(handle, k).decode() for k in range(self._info.classes)]
        self._session()  # refuses a wrong number of threads now

    @property
    def shape(self):
        """(C, H, W) of the pixels."""
        return self._info.channels, self._info.height, self._info.width

    @property
    def weight_bytes(self):
        return self._info.weight_bytes

    @property
    def pack_cache(self):
        """Whether packed weights were taken from the file that pack_cache=True asked for."""
        return self._info.pack_cache == 1

    def predict(self, image, top=5):
        """The most probable classes of an image, the most probable first.

        image: the path or the bytes of an image file, an array of bytes [H,W] (grey) or [H,W,3] (RGB) of any size, or
        an array of floats [C,H,W] from 0 to 1.
        """
        if isinstance(image, (str, os.PathLike)):
            with builtins.open(image, "rb") as file:
                image = file.read()
        if isinstance(image, (bytes, bytearray, memoryview)):
            content = bytes(image)
            _, probabilities = self._classify(1, "classify_encoded", content, len(content))
        elif numpy.asarray(image).dtype == numpy.uint8:
            probabilities = self._classify_bytes(numpy.asarray(image))
        else:
            _, probabilities = self._classify_pixels(numpy.asarray(image)[None])
        order = numpy.argsort(-probabilities[0], kind="stable")[:max(0, top)]
        return [Guess(self.classes[k], float(probabilities[0, k]), int(k)) for k in order]

    def logits(self, pixels):
        """[B,K] of pixels [B,C,H,W], or [K] of [C,H,W]: floats from 0 to 1."""
        pixels = numpy.asarray(pixels)
        return self._classify_pixels(pixels[None])[0][0] if pixels.ndim == 3 else self._classify_pixels(pixels)[0]

    def probabilities(self, pixels):
        """The same as logits(), as probabilities."""
        pixels = numpy.asarray(pixels)
        return self._classify_pixels(pixels[None])[1][0] if pixels.ndim == 3 else self._classify_pixels(pixels)[1]

    def routing(self):
        """The decisions of the last image or batch that this thread classified: a list of Routing."""
        found = []
        for decision in range(self._info.decisions):
            raw = RawRouting()
            call("get_routing", self._session(), decision, ctypes.byref(raw), ctypes.sizeof(raw))
            found.append(_routing(raw))
        return found

    def on_routing(self, function):
        """function(Routing) is called after each decision of this thread, before the experts compute. None: no more."""
        def run(_, __, raw):
            try:
                function(_routing(raw.contents))
                return 0
            except BaseException as error:  # raised again by the call that classifies
                self._local.error = error
                return 1

        callback = OnRouting(run) if function else OnRouting()
        call("set_on_routing", self._session(), callback, None)
        self._local.callback = callback  # lives as long as the library calls it

    def _session(self):
        session = getattr(self._local, "session", None)
        if session is None:
            handle = ctypes.c_void_p()
            call("open_session", self._handle, ctypes.byref(handle))
            session = self._local.session = _Session(handle)
            call("set_threads", handle, self._threads)
        return session.handle

    def _classify(self, images, name, *arguments):
        logits, probabilities = (numpy.empty((images, self._info.classes), numpy.float32) for _ in range(2))
        result = Result(ctypes.sizeof(Result), images, logits.ctypes.data, probabilities.ctypes.data, None)
        try:
            call(name, self._session(), *arguments, ctypes.byref(result))
        except Error:
            error, self._local.error = getattr(self._local, "error", None), None
            if error is not None:
                raise error from None
            raise
        return logits, probabilities

    def _classify_pixels(self, pixels):
        if pixels.ndim != 4 or pixels.shape[1:] != self.shape or pixels.shape[0] < 1:
            raise ValueError(f"pixels of the shape {list(pixels.shape)} were given; the model takes {list(self.shape)}, or "
                             f"a batch of them")
        pixels = numpy.ascontiguousarray(pixels, numpy.float32)
        shape = (ctypes.c_int64 * 4)(*pixels.shape)
        return self._classify(pixels.shape[0], "classify_pixels", pixels.ctypes.data, shape)

    def _classify_bytes(self, image):
        if image.ndim not in (2, 3) or image.size == 0:
            raise ValueError(f"an image of the shape {list(image.shape)} was given; give [H,W] (grey) or [H,W,3] (RGB)")
        image = numpy.ascontiguousarray(image)
        height, width, channels = (*image.shape, 1)[:3]
        return self._classify(1, "classify_image", image.ctypes.data, height, width, channels, width * channels)[1]


class _Session:
    """Closes itself with its thread."""

    def __init__(self, handle):
        self.handle = handle
        weakref.finalize(self, LIBRARY.sparsight_infer_close_session, handle)


def _routing(raw):
    def copied(pointer, dtype):
        if raw.assignments == 0:
            return numpy.empty(0, dtype)
        return numpy.ctypeslib.as_array(pointer, (raw.assignments,)).astype(dtype)

    return Routing(raw.layer.decode(), raw.experts, raw.images, raw.tokens_per_image, raw.prefix_tokens,
                   (raw.grid_height, raw.grid_width), copied(raw.token, numpy.int64), copied(raw.expert, numpy.int64),
                   copied(raw.gate, numpy.float32), copied(raw.kept, bool))
