// The text of Prometheus, line by line.
#include "sparsight/serve/metrics.h"

#include <gtest/gtest.h>

namespace sparsight::serve {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// 0.5 and 1 are at most 1; 2 is at most 4; 9 is above all bounds. The sum is 12.5.
TEST(Histogram, CountsWhatIsAtMostEachBound) {
  Histogram histogram({1, 4});
  for (const double value : {0.5, 1.0, 2.0, 9.0}) histogram.add(value);
  EXPECT_EQ(histogram.text("t", "Some."),
            "# HELP t Some.\n# TYPE t histogram\nt_bucket{le=\"1\"} 2\nt_bucket{le=\"4\"} 3\nt_bucket{le=\"+Inf\"} 4\n"
            "t_sum 12.5\nt_count 4\n");
}

TEST(Metrics, SumsByLabel) {
  Metrics metrics;
  metrics.add_request("/predict", 200, 0.003);
  metrics.add_request("/predict", 200, 0.004);
  metrics.add_request("/predict", 400, 0.0001);
  metrics.add_batch(3, 0.25);
  metrics.add_batch(1, 0.25);
  metrics.add_expert_load("blocks.0.mlp", {4, 0});
  metrics.add_expert_load("blocks.0.mlp", {1, 2});
  const std::string text = metrics.text({.waiting_images = 5, .connections = 2, .refused_connections = 7});
  for (const char* line :
       {R"(sparsight_requests_total{route="/predict",code="200"} 2)",
        R"(sparsight_requests_total{route="/predict",code="400"} 1)",
        R"(sparsight_request_seconds_bucket{le="0.0025"} 1)", R"(sparsight_request_seconds_bucket{le="0.005"} 3)",
        R"(sparsight_batch_images_bucket{le="1"} 1)", R"(sparsight_batch_images_bucket{le="4"} 2)",
        "sparsight_batch_images_sum 4", "sparsight_images_total 4", "sparsight_run_seconds_total 0.5",
        "sparsight_waiting_images 5", "sparsight_connections 2", "sparsight_refused_connections_total 7",
        R"(sparsight_expert_assignments_total{layer="blocks.0.mlp",expert="0"} 5)",
        R"(sparsight_expert_assignments_total{layer="blocks.0.mlp",expert="1"} 2)"})
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
}

TEST(Metrics, EscapesLabels) {
  Metrics metrics;
  metrics.add_expert_load("a\"b\\c\nd", {1});
  EXPECT_TRUE(has_line(metrics.text({}), R"(sparsight_expert_assignments_total{layer="a\"b\\c\nd",expert="0"} 1)"));
}

}  // namespace
}  // namespace sparsight::serve
