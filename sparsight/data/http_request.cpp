#include "sparsight/data/http_request.h"

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

void limit_to_http(CURL* transfer) {
#if LIBCURL_VERSION_NUM >= 0x075500
  constexpr CURLoption kOptions[] = {CURLOPT_PROTOCOLS_STR, CURLOPT_REDIR_PROTOCOLS_STR};
  const char* const allowed = "http,https";
#else
  constexpr CURLoption kOptions[] = {CURLOPT_PROTOCOLS, CURLOPT_REDIR_PROTOCOLS};
  const long allowed = CURLPROTO_HTTP | CURLPROTO_HTTPS;
#endif
  for (const CURLoption option : kOptions)
    if (libcurl().easy_setopt(transfer, option, allowed) != CURLE_OK)
      fail("the libcurl of this system is older than ", LIBCURL_VERSION, ", which this program was built with");
}

}  // namespace

HttpAnswer judge_transfer(CURLcode code, long status, const std::string& message) {
  if (code == CURLE_OK) return {};
  // The server does not support ranges, or the file has nothing after the downloaded part.
  if (code == CURLE_RANGE_ERROR || status == 416) return {HttpOutcome::kAgainFromStart, "it cannot resume a download"};
  if (code == CURLE_HTTP_RETURNED_ERROR) {
    const bool passing = status == 408 || status == 429 || status >= 500;
    return {passing ? HttpOutcome::kAgain : HttpOutcome::kGiveUp, cat("HTTP status ", status)};
  }
  const std::string text = message.empty() ? libcurl().easy_strerror(code) : message;
  switch (code) {
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
      return {HttpOutcome::kAgain, text};
    default:
      return {HttpOutcome::kGiveUp, text};
  }
}

void set_up_request(CURL* transfer, const std::string& url, int64_t min_bytes_per_second, int64_t max_slow_seconds) {
  const auto set = [&](CURLoption option, auto value) { libcurl().easy_setopt(transfer, option, value); };
  set(CURLOPT_URL, url.c_str());
  limit_to_http(transfer);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_CONNECTTIMEOUT, 20L);
  set(CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(min_bytes_per_second));
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(max_slow_seconds));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "sparsight");
}

}  // namespace sparsight
