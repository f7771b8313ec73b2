// metrics.jsonl: one JSON object per line, with its checksum (checked_json.h), appended during a run. The schema:
// docs/file_formats.md.
//
// Training reads it strictly, because it continues the file; tables and reports use the lines that can be read.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {

class MetricsLog {
 public:
  // Opens the log at `path`, or creates it. Lines of steps after `last_step` and a last line without newline (the
  // process was killed) are removed first: with the step of the checkpoint that a run resumes from, the log continues
  // as if the run had never stopped. So the lines of a step must be written before its checkpoint; 0 starts afresh and
  // keeps only the lines of step 0. The lines of a run's end (the evaluation on the test split, "done", those with
  // "end") are written after its last checkpoint: they are removed too, and written again.
  MetricsLog(const std::string& path, int64_t last_step);

  // Appends `line`, an object with "kind" and "step". It is in the file when this returns. NaN becomes null.
  void write(const Json& line);

 private:
  std::string path_;
  Descriptor file_;
};

// All complete lines. A line that is not an object or not what its checksum is of raises Error with its number; an
// unfinished last one is skipped. A missing file is an empty log. One that takes more than kMaxMetricsMemory raises
// Error.
std::vector<Json> read_metrics(const std::string& path);

// Calls `take` for each undamaged line, with one line in memory at a time. Returns how many lines could not be
// read and where the first is; "" for an intact log.
std::string for_each_readable_line(const std::string& path, const std::function<void(Json object)>& take);

}  // namespace sparsight
