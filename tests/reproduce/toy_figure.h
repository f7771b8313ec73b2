// A figure of which every number is known: y = 10 x + seed for two models and three x. Where `count` is a file, every
// measurement adds a byte to it, so that tests in several processes can count them.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight::testing {

struct ToyOptions {
  std::string count;
  int64_t seeds = 2;
  int64_t milliseconds = 0;  // duration of a job
};

inline void count_up(const std::string& file) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (write(descriptor, "x", 1) != 1) fail("cannot count");
  close(descriptor);
}

inline Figure toy_figure(const ToyOptions& options = {}) {
  Figure figure;
  figure.name = "toy/line";
  figure.title = "a line";
  figure.needs = "nothing";
  figure.duration = "0 s";
  figure.axes = {"model", "x"};
  figure.measures = {{"y", "y (%)", 1}};
  figure.jobs = [options](const FigureRun&) {
    std::vector<Json> jobs;
    for (const char* model : {"ours", "theirs"})
      for (const int x : {1, 2, 4})
        for (int64_t seed = 0; seed < options.seeds; ++seed)
          jobs.push_back({{"model", model}, {"x", x}, {"seed", seed}});
    return jobs;
  };
  figure.measure = [options](const Json& job, const FigureRun&) -> Json {
    if (!options.count.empty()) count_up(options.count);
    usleep(static_cast<useconds_t>(1000 * options.milliseconds));
    return {{"y", 10 * job.at("x").get<double>() + job.at("seed").get<double>()}};
  };
  figure.paper = {{{"model", "ours"}, {"x", 1}, {"y", 10.0}, {"y_deviation", 0.5}},
                  {{"x", 4}, {"y", 42.0}, {"model", "ours"}}};
  figure.claims = [](const ResultTable& table, const FigureRun&) -> std::vector<Claim> {
    const auto y = table.mean({{"model", "ours"}, {"x", 4}}, "y");
    if (!y) return {{"y grows", "no y at 4", std::nullopt}};
    return {{"y grows", cat(*y, " at 4"), *y > 10, "at x = 4"}};
  };
  figure.charts = {{FigureChart::Kind::line, "x", "y", "model", "", false, false, {{"half", 20.0}}}};
  return figure;
}

}  // namespace sparsight::testing
