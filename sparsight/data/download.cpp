#include "sparsight/data/download.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "sparsight/core/bytes.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/data/http_request.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

struct Transfer {
  std::FILE* file = nullptr;
  int64_t start = 0;  // bytes downloaded before
  const DownloadOptions* options = nullptr;
  bool disk_failed = false, too_long = false;
  int64_t written = 0;
  size_t header_bytes = 0;
};

// Headers are not kept; without an end they are no answer.
size_t count_header(char*, size_t, size_t bytes, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.header_bytes += bytes;
  return transfer.header_bytes > kMaxHttpHeaderBytes ? 0 : bytes;
}

size_t write_chunk(char* data, size_t, size_t bytes, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.written += static_cast<int64_t>(bytes);
  transfer.too_long = transfer.start + transfer.written > transfer.options->max_bytes;
  if (transfer.too_long) return 0;
  const size_t done = std::fwrite(data, 1, bytes, transfer.file);
  transfer.disk_failed = done != bytes;
  return done;
}

int report_progress(void* context, curl_off_t total, curl_off_t now, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(context);
  if (transfer.options->progress)
    transfer.options->progress(transfer.start + now, total > 0 ? transfer.start + total : 0);
  return interrupted() ? 1 : 0;
}

int64_t stored_bytes(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

void remove_file(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

// Appends the response of one request to `part`.
HttpAnswer request(const std::string& url, const std::string& part, const DownloadOptions& options) {
  const Libcurl& curl = libcurl();
  const std::unique_ptr<CURL, void (*)(CURL*)> handle(curl.easy_init(), curl.easy_cleanup);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(part.c_str(), "ab"), std::fclose);
  if (!file) fail("cannot write ", printable(part), ": ", std::strerror(errno));
  if (!handle) fail("not enough memory to download");
  Transfer transfer{file.get(), stored_bytes(part), &options};
  const auto set = [&](CURLoption option, auto value) { curl.easy_setopt(handle.get(), option, value); };
  char message[CURL_ERROR_SIZE] = "";
  set_up_request(handle.get(), url, options.min_bytes_per_second, options.max_slow_seconds);
  set(CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.start));
  set(CURLOPT_WRITEFUNCTION, write_chunk);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, report_progress);
  set(CURLOPT_XFERINFODATA, &transfer);
  set(CURLOPT_ERRORBUFFER, message);
  set(CURLOPT_HEADERFUNCTION, count_header);
  set(CURLOPT_HEADERDATA, &transfer);
  const CURLcode code = curl.easy_perform(handle.get());
  long status = 0;
  curl.easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  if (std::fflush(file.get()) != 0) transfer.disk_failed = true;
  if (transfer.disk_failed)
    fail("cannot write ", printable(part), ": ", std::strerror(errno), "; free some space and fetch again to continue");
  if (interrupted()) fail("interrupted; ", printable(part), " is kept, fetch again to continue");
  if (transfer.header_bytes > kMaxHttpHeaderBytes)
    return {HttpOutcome::kGiveUp, cat("it sends more than ", kMaxHttpHeaderBytes, " bytes of HTTP headers")};
  if (transfer.too_long) {
    remove_file(part);
    return {HttpOutcome::kGiveUp, cat("it sends more than ", options.max_bytes, " bytes")};
  }
  return judge_transfer(code, status, message);
}

// "" if `part` is complete, else what went wrong.
std::string fetch_from(const std::string& url, const std::string& part, const DownloadOptions& options) {
  double pause = options.first_pause;
  std::string problem;
  for (int attempt = 1; attempt <= options.tries; ++attempt) {
    const HttpAnswer answer = request(url, part, options);
    if (answer.outcome == HttpOutcome::kDone) return "";
    problem = answer.text;
    if (answer.outcome == HttpOutcome::kGiveUp) break;
    if (answer.outcome == HttpOutcome::kAgainFromStart) {
      remove_file(part);
      continue;
    }
    if (attempt == options.tries) break;
    log_info(url, ": ", problem, "; retrying from byte ", stored_bytes(part));
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    pause *= 2;
  }
  return problem;
}

}  // namespace

void download(const std::vector<std::string>& urls, const FileCheck& check, const std::string& path,
              const DownloadOptions& options) {
  const std::string part = path + ".part";
  std::vector<std::string> problems;
  for (const std::string& url : urls) {
    // Once more from the start, in case the resumed part is to blame and not the server.
    for (bool continued = stored_bytes(part) > 0, again = true; again; continued = false) {
      again = false;
      std::string problem = fetch_from(url, part, options);
      if (problem.empty()) {
        problem = check(part);
        if (problem.empty()) {
          std::error_code error;
          fs::rename(part, path, error);
          if (error) fail("cannot rename ", printable(part), ": ", error.message());
          return;
        }
        remove_file(part);
        again = continued;
      }
      if (!again) problems.push_back(cat(url, ": ", printable(problem)));
    }
  }
  if (stored_bytes(part) == 0) remove_file(part);
  fail("cannot download ", fs::path(path).filename().native(), " (", join(problems, "; "),
       "); try again later, or give another address with --mirror or a folder with --from");
}

}  // namespace sparsight
