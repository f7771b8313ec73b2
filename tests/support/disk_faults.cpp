#include "tests/support/disk_faults.h"

#include <filesystem>
#include <set>
#include <sstream>

#include "sparsight/io/atomic_file.h"
#include "tests/support/paths.h"

namespace sparsight::testing {
namespace {

bool writes_a_temporary_file(const std::string& text) { return text.starts_with("write ") && text.ends_with(".tmp"); }

}  // namespace

ProgramOptions DiskFaults::options(int64_t at, DiskFault fault) const {
  ProgramOptions options;
  options.timeout_seconds = 120;
  options.environment = {{"LD_PRELOAD", test::disk_fault_library()},
                         {"SPARSIGHT_FAULT_FOLDER", folder_},
                         {"SPARSIGHT_FAULT_COUNTER", aside_.write("counter", std::string(sizeof(long), '\0'))},
                         {"SPARSIGHT_FAULT_AT", std::to_string(at)},
                         {"SPARSIGHT_FAULT_KIND", fault == DiskFault::kill ? "kill" : "full"},
                         {"SPARSIGHT_PYTHON", "/bin/false"}};  // charts as pictures would take seconds
  return options;
}

ProgramResult DiskFaults::run_and_count(const std::vector<std::string>& arguments) {
  ProgramOptions counting = options(0, DiskFault::kill);
  counting.environment["SPARSIGHT_FAULT_LOG"] = aside_.write("log", "");
  ProgramResult result = run_program(arguments, counting);
  std::istringstream log(read_file(aside_.path("log"), size_t{1} << 26));
  operations_.clear();
  for (std::string line; std::getline(log, line);) operations_.push_back({std::ssize(operations_) + 1, line});
  return result;
}

std::vector<FileOperation> DiskFaults::sampled(size_t limit) const {
  std::vector<FileOperation> distinct, sample;
  for (const FileOperation& operation : operations_)
    if (distinct.empty() || !writes_a_temporary_file(operation.text) || operation.text != distinct.back().text)
      distinct.push_back(operation);
  const size_t all = distinct.size(), ends = limit / 3, between = limit - 2 * ends;
  if (all <= limit) return distinct;
  std::set<size_t> chosen;
  for (size_t i = 0; i < ends; ++i) chosen.insert({i, all - 1 - i});
  for (size_t i = 0; i < between; ++i) chosen.insert(i * all / between);
  for (const size_t i : chosen) sample.push_back(distinct[i]);
  return sample;
}

ProgramResult DiskFaults::run_with(DiskFault fault, int64_t at, const std::vector<std::string>& arguments) const {
  return run_program(arguments, options(at, fault));
}

}  // namespace sparsight::testing
