// Downloads one file by HTTP or HTTPS.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sparsight/core/limits.h"

namespace sparsight {

struct DownloadOptions {
  int tries = 4;             // per address, for failures that may be temporary
  double first_pause = 0.5;  // seconds before the second try; doubled each time
  int64_t max_bytes = kMaxDownloadBytes;
  // A slower answer is aborted and counts as a try.
  int64_t min_bytes_per_second = 1000;
  int64_t max_slow_seconds = 30;
  std::function<void(int64_t, int64_t)> progress;  // (bytes so far, total bytes or 0)
};

// Checks a downloaded file: "" if it is right, else what is wrong with it.
using FileCheck = std::function<std::string(const std::string& path)>;

// Downloads from the first of `urls` whose file passes `check`. The bytes are written to `path`.part, which a later
// call resumes (HTTP Range) and which is renamed to `path` in the end. Raises Error with the problem of each
// address.
void download(const std::vector<std::string>& urls, const FileCheck& check, const std::string& path,
              const DownloadOptions& options = {});

}  // namespace sparsight
