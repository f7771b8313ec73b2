// Jobs that take no time: x = 0 .. count-1, with the result 10 x.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "sparsight/jobs/run_jobs.h"

namespace sparsight::testing {

inline const std::string kToyJobs = "toy jobs";

inline JobList toy_jobs(int64_t count) {
  JobList list;
  list.name = "toy";
  for (int64_t x = 0; x < count; ++x) list.settings.push_back({{"x", x}});
  list.run = [](const Json& settings, const std::string&) -> Json { return 10 * settings.at("x").get<int64_t>(); };
  return list;
}

inline int64_t count_done(const JobList& list, const JobStore& store) {
  int64_t done = 0;
  for (const Json& job : list.settings) done += store.is_done(job);
  return done;
}

}  // namespace sparsight::testing
