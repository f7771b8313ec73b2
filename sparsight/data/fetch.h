// Brings a published dataset into a folder and proves that it is the published one.
#pragma once

#include <string>

#include "sparsight/data/download.h"
#include "sparsight/data/remote_sets.h"

namespace sparsight {

struct FetchOptions {
  std::string to;      // folder that will hold the files
  std::string mirror;  // base address instead of the set's own; or ""
  std::string from;    // folder that already has the files, instead of the web; or ""
  DownloadOptions download;
};

// Files that are there and right are left alone, so that a fetch that was stopped goes on. In the end `to`/SHA256SUMS
// lists every file. Raises Error where a file cannot be had or has another checksum; what is right by then is kept.
void fetch_set(const RemoteSet& set, const FetchOptions& options);

}  // namespace sparsight
