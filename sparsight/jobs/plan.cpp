#include "sparsight/jobs/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// "0.24 hours", "0.0012 hours", "120 hours"
std::string hours_text(double seconds) {
  const double hours = seconds / 3600;
  char text[40];
  std::snprintf(text, sizeof text, hours < 100 ? "%.2g" : "%.0f", hours);
  return cat(text, " hours");
}

// A number without a unit where the list declares none, or only ratios.
double declared_seconds(const JobList& list, const Json& job) {
  const double seconds = list.expected_seconds ? list.expected_seconds(job) : 1;
  SPARSIGHT_CHECK(seconds > 0 && std::isfinite(seconds));
  return seconds;
}

bool times_are_declared(const JobList& list) { return list.expected_seconds && !list.expects_ratios; }

// The plan where no job has been started. Looks at one job of each block.
JobPlan unstarted_plan(const JobList& list) {
  JobPlan plan;
  plan.name = list.name;
  plan.jobs = std::ssize(list.settings);
  if (!times_are_declared(list)) return plan;
  plan.seconds_left = plan.longest_left = 0;
  for (const auto& block : list.settings.blocks()) {
    const double seconds = declared_seconds(list, block.at(0));
    *plan.seconds_left += static_cast<double>(block.count) * seconds;
    plan.longest_left = std::max(*plan.longest_left, seconds);
  }
  return plan;
}

Json hours(const std::optional<double>& seconds) { return seconds ? Json(*seconds / 3600) : Json(); }

}  // namespace

std::vector<double> expected_seconds(const JobList& list, const JobStore& store) {
  std::vector<double> expected;
  double measured = 0, expected_of_measured = 0;
  for (const Json& job : list.settings) {
    expected.push_back(declared_seconds(list, job));
    if (const auto done = store.read(job)) {
      measured += done->seconds;
      expected_of_measured += expected.back();
    }
  }
  if (expected_of_measured > 0)
    for (double& seconds : expected) seconds *= measured / expected_of_measured;
  else if (!times_are_declared(list))
    expected.clear();
  return expected;
}

JobPlan plan_jobs(const JobList& list, const JobStore* store) {
  if (store == nullptr) return unstarted_plan(list);
  JobPlan plan;
  plan.name = list.name;
  plan.jobs = std::ssize(list.settings);
  const std::vector<double> expected = expected_seconds(list, *store);
  if (!expected.empty()) plan.seconds_left = plan.longest_left = 0;
  for (size_t i = 0; i < list.settings.size(); ++i) {
    const Json job = list.settings[i];
    if (const auto done = store->read(job)) {
      ++plan.done;
      plan.seconds_done += done->seconds;
      continue;
    }
    plan.failed += store->has_failed(job);
    plan.running += store->is_claimed(job);
    if (expected.empty()) continue;
    *plan.seconds_left += expected[i];
    plan.longest_left = std::max(*plan.longest_left, expected[i]);
  }
  plan.measured = plan.done > 0;
  return plan;
}

std::string plan_text(const JobPlan& plan, int64_t processes) {
  std::string text = cat(plan.name, ": ", plan.jobs, plan.jobs == 1 ? " job, " : " jobs, ", plan.done, " done, ",
                         plan.left(), " left");
  if (plan.failed > 0 || plan.running > 0) {
    text += " (";
    if (plan.failed > 0) text += cat(plan.failed, " failed before");
    if (plan.failed > 0 && plan.running > 0) text += ", ";
    if (plan.running > 0) text += cat(plan.running, " running");
    text += ")";
  }
  if (plan.left() == 0) return cat(text, "; they took ", hours_text(plan.seconds_done));
  if (!plan.seconds_left) return text + "; the time is unknown until the first one is done";
  text += cat("; estimated time ", hours_text(*plan.seconds_left));
  const int64_t used = std::min(processes, plan.left());
  if (used > 1)  // never less than the longest job
    text += cat(", ", hours_text(std::max(*plan.seconds_left / static_cast<double>(used), *plan.longest_left)),
                " with ", used, " processes");
  return text + (plan.measured ? " (based on the finished jobs)" : " (a rough estimate: no job is finished yet)");
}

Json plan_json(const JobPlan& plan) {
  Json estimate;
  if (plan.seconds_left) estimate = plan.measured ? "measured" : "declared";
  return {{"name", plan.name},
          {"jobs", plan.jobs},
          {"done", plan.done},
          {"left", plan.left()},
          {"failed", plan.failed},
          {"running", plan.running},
          {"hours_done", plan.seconds_done / 3600},
          {"expected_hours", hours(plan.seconds_left)},
          {"longest_hours", hours(plan.longest_left)},
          {"estimate", estimate}};
}

}  // namespace sparsight
