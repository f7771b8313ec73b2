// Prefetches what is read next into the caches, while something else is computed. What each kernel prefetches:
// docs/kernels.md, "Prefetching".
#pragma once

#include <cstdint>

#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {
namespace {

#ifdef SPARSIGHT_NO_PREFETCH
constexpr bool kPrefetch = false;  // to measure the gain of prefetching: docs/kernels.md
#else
constexpr bool kPrefetch = true;
#endif

// Prefetches a matrix piece by piece: row after row in memory order, which is faster than the order in which tiles
// read, or in up to kStreams streams `stream_stride` bytes from each other, a piece of each in turn (Gemm::streams).
struct Fetch {
  static constexpr int64_t kStreams = 8;
  // Bytes. Pieces of one cache line would put too many prefetch instructions between the steps of a tile.
  static constexpr int64_t kLongPiece = 256;
  uintptr_t at = 0, row_end = 0;
  int64_t row_bytes = 0, stride = 0, piece = 0;
  int64_t streams = 1, stream_stride = 0, stream = 0;
  int64_t left = 0;  // pieces

  Fetch() = default;
  // Nothing, if `matrix` is null.
  Fetch(const void* matrix, int64_t rows, int64_t bytes, int64_t row_stride, int64_t piece_bytes, int64_t max_streams)
      : at(reinterpret_cast<uintptr_t>(matrix)),
        row_end(at + bytes),
        row_bytes(bytes),
        stride(row_stride),
        piece(piece_bytes) {
    for (streams = max_streams; rows % streams != 0;) streams /= 2;
    stream_stride = rows / streams * stride;
    if (matrix && kPrefetch) left = rows * ((bytes + piece - 1) / piece);
  }
  // Rows of `count` matrices that are `apart` bytes from each other, a piece of each in turn. Nothing, if `first` is
  // null.
  static Fetch of_several(const void* first, int64_t rows, int64_t bytes, int64_t row_stride, int64_t count,
                          int64_t apart) {
    Fetch fetch(first, rows, bytes, row_stride, kLongPiece, 1);
    fetch.streams = count, fetch.stream_stride = apart;
    fetch.left *= count;
    return fetch;
  }
  // All of Gemm::prefetch.
  static Fetch of_whole(const Gemm& p) {
    constexpr int64_t kSize = sizeof(float);
    return Fetch(p.prefetch, p.prefetch_rows, p.prefetch_columns * kSize, p.prefetch_ld * kSize, kLongPiece, 1);
  }
  // Steps per piece, such that all pieces are prefetched within `steps` steps if there are enough steps.
  int64_t every(int64_t steps) const { return left == 0 ? steps + 1 : steps > left ? steps / left : 1; }

  // Into all caches, or into all but L1, which then keeps the data in use.
  enum Locality { kAllCaches = 3, kNotFirst = 2 };
  template <Locality kLocality = kAllCaches>
  void next() {
    if (left == 0) return;
    --left;
    for (int64_t byte = 0; byte < piece; byte += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(at + byte), 0, kLocality);
    at += stream_stride;
    if (++stream < streams) return;
    stream = 0;
    at += piece - streams * stream_stride;
    if (at < row_end) return;
    row_end += stride;
    at = row_end - row_bytes;
  }
};

}  // namespace
}  // namespace sparsight::cpu
