// One file from the web, by HTTP or HTTPS.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sparsight/core/limits.h"

namespace sparsight {

struct DownloadOptions {
  int tries = 4;             // per address, for what may be a passing fault
  double first_pause = 0.5;  // seconds before the second try; doubled each time
  int64_t max_bytes = kMaxDownloadBytes;
  // An answer slower than this is broken off, and counts as a try.
  int64_t min_bytes_per_second = 1000;
  int64_t max_slow_seconds = 30;
  std::function<void(int64_t, int64_t)> progress;  // (bytes so far, bytes in all or 0)
};

// Looks at a downloaded file: "" where it is right, else what is wrong with it.
using FileCheck = std::function<std::string(const std::string& path)>;

// Downloads from the first of `urls` that delivers a file that `check` finds right. The bytes go to `path`.part, which
// a later call continues (HTTP Range), and are renamed to `path` in the end. Raises Error that says what each address
// answered.
void download(const std::vector<std::string>& urls, const FileCheck& check, const std::string& path,
              const DownloadOptions& options = {});

}  // namespace sparsight
