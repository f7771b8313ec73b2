// What all HTTP requests have in common: which protocols, how long to wait, and which failures may pass.
#pragma once

#include <cstdint>
#include <string>

#include "sparsight/data/libcurl.h"

namespace sparsight {

enum class HttpOutcome { kDone, kAgain, kAgainFromStart, kGiveUp };

struct HttpAnswer {
  HttpOutcome outcome = HttpOutcome::kDone;
  std::string text = {};  // what went wrong
};

// `message`: libcurl's own, or "".
HttpAnswer judge_transfer(CURLcode code, long status, const std::string& message);

// An answer slower than `min_bytes_per_second` for `max_slow_seconds` is aborted. Raises Error where the library is
// older than its headers, and cannot be limited to HTTP and HTTPS.
void set_up_request(CURL* transfer, const std::string& url, int64_t min_bytes_per_second, int64_t max_slow_seconds);

}  // namespace sparsight
