#include "sparsight/data/shards/http_reader.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/data/http_request.h"

namespace sparsight {

// A file or part that comes in one or more answers.
struct HttpReader::Reception {
  int64_t first = -1;  // of the part; -1: the whole file
  int64_t most = 0;    // bytes
  Bytes bytes = {};    // so far
  int64_t total = -1;  // of the whole file, once known
  bool is_missing = false;

  // The current answer:
  void* handle = nullptr;
  size_t header_bytes = 0;
  bool begun = false;
  std::string content_range = {}, refusal = {};

  int64_t next() const { return std::max<int64_t>(first, 0) + std::ssize(bytes); }
  bool is_whole() const { return first < 0; }
  bool lacks_bytes() const { return !is_whole() && std::ssize(bytes) < std::min(most, total - first); }
  void begin();
};

namespace {

// "bytes 100-199/5000"; false for anything else, also where the size of the file is not told.
bool parse_content_range(std::string_view text, int64_t& first, int64_t& total) {
  if (!text.starts_with("bytes ")) return false;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const auto number = [](std::string_view digits, int64_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end != digits.data() && value >= 0;
  };
  return number(text.substr(6), first) && number(text.substr(slash + 1), total);
}

bool is_header(std::string_view line, std::string_view name) {
  return line.size() > name.size() && std::ranges::equal(line.substr(0, name.size()), name, [](char a, char b) {
           return a == b || (a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b);
         });
}

}  // namespace

// Judges the answer by its status and headers, before its first byte.
void HttpReader::Reception::begin() {
  begun = true;
  long status = 0;
  libcurl().easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  if (is_whole() && bytes.empty()) return;
  int64_t begins = 0, all = 0;
  if (status == 206 && parse_content_range(content_range, begins, all)) {
    if (begins != next())
      refusal = cat("it was requested to send bytes from ", next(), " on and sends those from ", begins, " on");
    else if (total >= 0 && all != total)
      refusal = cat("the file had ", total, " bytes and now has ", all);
    total = all;
  } else if (is_whole()) {
    bytes.clear();  // it starts again
  } else {
    refusal = status == 206 ? "it does not say which bytes of how many it sends"
                            : "it does not answer requests for parts of a file (Range)";
  }
}

// Takes a handle with its connection, and gives it back.
class HttpReader::Handle {
 public:
  explicit Handle(const HttpReader& reader) : reader_(reader) {
    const std::lock_guard lock(reader.mutex_);
    if (!reader.idle_.empty()) {
      value_ = reader.idle_.back();
      reader.idle_.pop_back();
    } else {
      value_ = libcurl().easy_init();
    }
    if (!value_) fail("not enough memory to download");
  }
  ~Handle() {
    const std::lock_guard lock(reader_.mutex_);
    reader_.idle_.push_back(value_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  CURL* get() const { return value_; }

 private:
  const HttpReader& reader_;
  void* value_ = nullptr;
};

HttpReader::HttpReader(const HttpReadOptions& options) : options_(options) {}

HttpReader::~HttpReader() {
  for (void* handle : idle_) libcurl().easy_cleanup(handle);
}

namespace {

template <class Reception>
size_t take_header(char* text, size_t, size_t bytes, void* context) {
  auto& reception = *static_cast<Reception*>(context);
  std::string_view line(text, bytes);
  reception.header_bytes += bytes;
  if (line.starts_with("HTTP/")) reception.content_range.clear();  // of a redirection before
  constexpr std::string_view kRange = "content-range:";
  if (is_header(line, kRange)) {
    line.remove_prefix(kRange.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    reception.content_range = line;
  }
  return reception.header_bytes > kMaxHttpHeaderBytes ? 0 : bytes;
}

template <class Reception>
size_t take_bytes(char* data, size_t, size_t bytes, void* context) {
  auto& reception = *static_cast<Reception*>(context);
  if (!reception.begun) reception.begin();
  if (reception.refusal.empty() && static_cast<int64_t>(bytes) > reception.most - std::ssize(reception.bytes))
    reception.refusal = cat("it sends more than ", reception.most, " bytes");
  if (!reception.refusal.empty()) return 0;
  reception.bytes.insert(reception.bytes.end(), data, data + bytes);
  return bytes;
}

template <class Reception>
HttpAnswer ask(CURL* handle, const std::string& url, const HttpReadOptions& options, Reception& reception) {
  const Libcurl& curl = libcurl();
  const auto set = [&](CURLoption option, auto value) { curl.easy_setopt(handle, option, value); };
  reception.handle = handle;
  reception.header_bytes = 0, reception.begun = false;
  char message[CURL_ERROR_SIZE] = "";
  set_up_request(handle, url, options.min_bytes_per_second, options.max_slow_seconds);
  std::string range;
  if (!reception.is_whole())
    range = cat(reception.next(), "-", reception.first + reception.most - 1);
  else if (!reception.bytes.empty())
    range = cat(reception.next(), "-");
  set(CURLOPT_RANGE, range.empty() ? nullptr : range.c_str());
  set(CURLOPT_WRITEFUNCTION, take_bytes<Reception>);
  set(CURLOPT_WRITEDATA, &reception);
  set(CURLOPT_HEADERFUNCTION, take_header<Reception>);
  set(CURLOPT_HEADERDATA, &reception);
  set(CURLOPT_ERRORBUFFER, message);
  const CURLcode code = curl.easy_perform(handle);
  set(CURLOPT_ERRORBUFFER, nullptr);
  long status = 0;
  curl.easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  if (!reception.refusal.empty()) return {HttpOutcome::kGiveUp, reception.refusal};
  if (reception.header_bytes > kMaxHttpHeaderBytes)
    return {HttpOutcome::kGiveUp, cat("it sends more than ", kMaxHttpHeaderBytes, " bytes of HTTP headers")};
  reception.is_missing = status == 404 || status == 410;
  if (status == 416) return {HttpOutcome::kGiveUp, cat("its file has no byte ", reception.next())};
  if (code == CURLE_OK && !reception.is_whole() && (!reception.begun || reception.lacks_bytes()))
    return {HttpOutcome::kAgain, "it sends fewer bytes than requested"};
  return judge_transfer(code, status, message);
}

}  // namespace

std::string HttpReader::receive(const std::string& url, Reception& reception) const {
  const Handle handle(*this);
  double pause = options_.first_pause;
  for (int attempt = 1;; ++attempt) {
    const HttpAnswer answer = ask(handle.get(), url, options_, reception);
    if (answer.outcome == HttpOutcome::kDone) return "";
    // A training that is to stop ends its step first, for which it needs what is on its way.
    if (answer.outcome == HttpOutcome::kGiveUp || attempt >= options_.tries || interrupted()) return answer.text;
    log_info(url, ": ", answer.text, "; retrying from byte ", reception.next());
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    pause *= 2;
  }
}

std::optional<Bytes> HttpReader::whole(const std::string& url, int64_t max_bytes) const {
  Reception reception;
  reception.most = max_bytes;
  const std::string problem = receive(url, reception);
  if (reception.is_missing) return std::nullopt;
  if (!problem.empty()) fail("cannot read ", printable(url), ": ", printable(problem), "; try again later");
  return std::move(reception.bytes);
}

FilePart HttpReader::part(const std::string& url, int64_t first, int64_t bytes) const {
  SPARSIGHT_CHECK(first >= 0 && bytes > 0);
  Reception reception;
  reception.first = first, reception.most = bytes;
  const std::string problem = receive(url, reception);
  if (!problem.empty())
    fail("cannot read ", bytes, " bytes from byte ", first, " on of ", printable(url), ": ", printable(problem),
         reception.is_missing ? "; is the name of the shard right?" : "; try again later, or get the shards as files");
  return {std::move(reception.bytes), reception.total};
}

}  // namespace sparsight
