// Reads files, or parts of them, by HTTP or HTTPS into memory. Connections are kept for further requests.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/bytes.h"

namespace sparsight {

struct HttpReadOptions {
  int tries = 4;             // for failures that may be temporary
  double first_pause = 0.5;  // seconds before the second try; doubled each time
  // A slower answer is aborted and counts as a try.
  int64_t min_bytes_per_second = 1000;
  int64_t max_slow_seconds = 30;
};

struct FilePart {
  Bytes bytes;
  int64_t total = 0;  // bytes of the whole file
};

// Its functions may be called from several threads. What came of an answer that breaks off is kept, and the next try
// asks for the rest. They raise Error naming URL and problem: a server that fails every time, that does not answer
// ranges, or that sends more than requested.
class HttpReader {
 public:
  explicit HttpReader(const HttpReadOptions& options = {});
  ~HttpReader();
  HttpReader(const HttpReader&) = delete;
  HttpReader& operator=(const HttpReader&) = delete;

  // The whole file; nothing where the server has none (404). Raises Error if it has more than `max_bytes`.
  std::optional<Bytes> whole(const std::string& url, int64_t max_bytes) const;
  // `bytes` from `first` on; fewer where the file ends before.
  FilePart part(const std::string& url, int64_t first, int64_t bytes) const;

 private:
  struct Reception;
  class Handle;
  // "" if all has come, else what went wrong.
  std::string receive(const std::string& url, Reception& reception) const;

  HttpReadOptions options_;
  mutable std::mutex mutex_;
  mutable std::vector<void*> idle_;  // handles of libcurl, with their connections
};

}  // namespace sparsight
