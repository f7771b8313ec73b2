// Downloads a published dataset into a folder and verifies its checksums.
#pragma once

#include <string>

#include "sparsight/data/download.h"
#include "sparsight/data/remote_sets.h"

namespace sparsight {

struct FetchOptions {
  std::string to;      // folder that will hold the files
  std::string mirror;  // base address instead of the set's own; or ""
  std::string from;    // folder that already has the files, instead of a download; or ""
  DownloadOptions download;
};

// Existing files with the right checksum are kept, so that an interrupted fetch can continue. In the end
// `to`/SHA256SUMS lists every file. Raises Error if a file is unavailable or has another checksum; others are kept.
void fetch_set(const RemoteSet& set, const FetchOptions& options);

}  // namespace sparsight
