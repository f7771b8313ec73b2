// What the content of a dataset's files is: to tell data from other data, and the published files from all others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/data/places.h"

namespace sparsight {

// A file's content; of a .gz file what it unpacks to.
struct FileContent {
  std::string name;  // PlacedFile::name
  int64_t bytes = 0;
  std::string sha256;
};

struct DataFingerprint {
  std::vector<FileContent> files;
  std::string hex;                // [kFingerprintDigits] of all names, sizes and contents
  std::optional<bool> published;  // whether they are the published files; null if no checksums are known
};

inline constexpr size_t kFingerprintDigits = 16;

// Reads all files of the set in `folder`. Raises Error as placed_files() does.
DataFingerprint data_fingerprint(const DataPlace& place, const std::string& folder);

// The fingerprint of `texts` together.
std::string fingerprint_texts(const std::vector<std::string>& texts);

}  // namespace sparsight
