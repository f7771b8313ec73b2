// How much of an input is read before it is refused. Files may come from anybody: none may take more memory or time
// than its kind can need. docs/file_formats.md lists the limits that a user can meet.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparsight {

// JSON. Copies, comparisons and output of a value recurse, so the stack bounds its depth. Our files nest 8 deep.
inline constexpr size_t kMaxJsonDepth = 64;
// Keys of one object. Lookups in it are linear; the largest objects of our files have a key per MoE layer.
inline constexpr size_t kMaxJsonKeys = 10'000;
// Values of one text. An empty string or list takes 64 bytes of memory, so these take a quarter of a gigabyte.
inline constexpr size_t kMaxJsonValues = size_t{1} << 22;
inline constexpr size_t kMaxJsonBytes = size_t{1} << 24;  // of a file that is one JSON text; a job's has kilobytes

// TOML. toml++ and the conversion to JSON recurse over nested values and dotted keys.
inline constexpr size_t kMaxTomlDepth = 32;     // lists and inline tables
inline constexpr size_t kMaxTomlKeyParts = 16;  // of one dotted key; settings have two
inline constexpr size_t kMaxConfigBytes = size_t{1}
                                          << 22;  // a configuration has kilobytes; parsed it takes 100 times that

// metrics.jsonl is read line by line.
inline constexpr uint64_t kMaxMetricsBytes = uint64_t{1} << 32;  // a run of years
inline constexpr size_t kMaxMetricsLineBytes = size_t{1} << 26;  // counts of 20,000 classes, 32 experts and 6 layers
inline constexpr size_t kMaxMetricsMemory = size_t{1} << 29;     // of what a reader keeps of all lines

// Weights and records.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes, as in the reference implementation
inline constexpr size_t kMaxPickleBytes = size_t{1} << 24;      // 200 describe a tensor
inline constexpr int64_t kMaxRecordBytes = int64_t{1} << 34;

// Data sets.
inline constexpr int64_t kMaxFileBytes = int64_t{16} << 30;     // more does not fit into memory
inline constexpr int64_t kMaxUnpackedBytes = int64_t{1} << 30;  // of a gzip file; EMNIST has half of that
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;    // 8192 x 8192; about 400 MB while it is read
inline constexpr int64_t kMaxImageFileBytes = int64_t{1} << 30;
inline constexpr int64_t kMaxManifestBytes = int64_t{1} << 31;
inline constexpr int64_t kMaxListBytes = int64_t{1} << 28;      // CelebA's tables have 30 MB
inline constexpr int64_t kMaxNamesBytes = int64_t{1} << 20;     // class names, SHA256SUMS
inline constexpr int64_t kMaxDownloadBytes = int64_t{1} << 33;  // where a data set does not say its own
inline constexpr size_t kMaxHttpHeaderBytes = size_t{1} << 18;  // of one answer and what it redirects to

// Other text.
inline constexpr size_t kMaxPictureBytes = size_t{1} << 24;  // an explanation's or chart's PNG
inline constexpr size_t kMaxTextBytes = size_t{1} << 24;     // documentation pages, job scripts, claims
inline constexpr size_t kMaxComparedName = 128;              // longer names are compared whole, not by edit distance
// The names of images on standard input.
inline constexpr size_t kMaxPathBytes = size_t{1} << 16;
inline constexpr size_t kMaxImageNames = size_t{1} << 23;
inline constexpr size_t kMaxImageNamesBytes = size_t{1} << 28;

}  // namespace sparsight
