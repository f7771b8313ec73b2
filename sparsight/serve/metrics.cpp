#include "sparsight/serve/metrics.h"

#include <algorithm>
#include <charconv>

#include "sparsight/core/error.h"

namespace sparsight::serve {
namespace {

std::string number_text(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

// The value of a label: backslashes, quotes and line breaks are escaped.
std::string quoted(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text + "\"";
}

std::string head(const std::string& name, const char* type, const std::string& help) {
  return cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

std::string single(const std::string& name, const char* type, const std::string& help, double value) {
  return cat(head(name, type, help), name, " ", number_text(value), "\n");
}

}  // namespace

void Histogram::add(double value) {
  ++counts_[static_cast<size_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin())];
  sum_ += value;
}

std::string Histogram::text(const std::string& name, const std::string& help) const {
  std::string text = head(name, "histogram", help);
  int64_t below = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    text += cat(name, "_bucket{le=\"", i < bounds_.size() ? number_text(bounds_[i]) : "+Inf", "\"} ", below, "\n");
  }
  return cat(text, name, "_sum ", number_text(sum_), "\n", name, "_count ", below, "\n");
}

void Metrics::add_request(const std::string& route, int code, double seconds) {
  const std::lock_guard lock(mutex_);
  ++requests_[{route, code}];
  latency_.add(seconds);
}

void Metrics::add_batch(int64_t images, double seconds) {
  const std::lock_guard lock(mutex_);
  batch_images_.add(static_cast<double>(images));
  images_ += images;
  run_seconds_ += seconds;
}

void Metrics::add_expert_load(const std::string& layer, const std::vector<int64_t>& counts) {
  const std::lock_guard lock(mutex_);
  std::vector<int64_t>& load = expert_load_[layer];
  load.resize(std::max(load.size(), counts.size()));
  for (size_t e = 0; e < counts.size(); ++e) load[e] += counts[e];
}

std::string Metrics::text(const Gauges& now) const {
  const std::lock_guard lock(mutex_);
  std::string text = head("sparsight_requests_total", "counter", "Requests that were answered, by route and code.");
  for (const auto& [key, count] : requests_)
    text += cat("sparsight_requests_total{route=", quoted(key.first), ",code=\"", key.second, "\"} ", count, "\n");
  text += latency_.text("sparsight_request_seconds", "Time from a request's head to its answer.");
  text += batch_images_.text("sparsight_batch_images", "Images that were computed at once.");
  text += single("sparsight_images_total", "counter", "Images that were classified.", static_cast<double>(images_));
  text += single("sparsight_run_seconds_total", "counter", "Time in which the model ran.", run_seconds_);
  text += single("sparsight_waiting_images", "gauge", "Images in the queue.", static_cast<double>(now.waiting_images));
  text += single("sparsight_connections", "gauge", "Open connections.", static_cast<double>(now.connections));
  text += single("sparsight_refused_connections_total", "counter", "Connections beyond the limit.",
                 static_cast<double>(now.refused_connections));
  text += head("sparsight_expert_assignments_total", "counter", "Tokens that an expert of a layer computed.");
  for (const auto& [layer, counts] : expert_load_)
    for (size_t e = 0; e < counts.size(); ++e)
      text += cat("sparsight_expert_assignments_total{layer=", quoted(layer), ",expert=\"", e, "\"} ", counts[e], "\n");
  return text;
}

}  // namespace sparsight::serve
