// What a server counts, in the text format of Prometheus (version 0.0.4).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace sparsight::serve {

// How many observations are at most each bound, and their sum.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void add(double value);
  // Lines of name_bucket, name_sum and name_count, with the comments before them.
  std::string text(const std::string& name, const std::string& help) const;

 private:
  std::vector<double> bounds_;   // ascending
  std::vector<int64_t> counts_;  // in each interval; the last: above all bounds
  double sum_ = 0;
};

// What the server has now, which nobody adds up.
struct Gauges {
  int64_t waiting_images = 0, connections = 0, refused_connections = 0;
};

// From any number of threads.
class Metrics {
 public:
  // route: one of few names, never what a client sent.
  void add_request(const std::string& route, int code, double seconds);
  void add_batch(int64_t images, double seconds);
  // counts: [E], the assignments of each expert of that layer.
  void add_expert_load(const std::string& layer, const std::vector<int64_t>& counts);

  std::string text(const Gauges& now) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_;  // by route and code
  Histogram latency_{{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}};
  Histogram batch_images_{{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}};
  int64_t images_ = 0;
  double run_seconds_ = 0;
  std::map<std::string, std::vector<int64_t>> expert_load_;  // by layer
};

}  // namespace sparsight::serve
