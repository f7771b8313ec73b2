// metrics.jsonl: one JSON object a line, appended while a run goes on. The schema: docs/file_formats.md.
//
// Training reads it strictly, because it goes on writing it; tables and reports take what can be read.
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
  // Opens the log at `path`, made where it is missing. Lines of steps after `last_step` and a last line without its end
  // (the process was killed) are removed first: with the step of the checkpoint that a run resumes from, the log goes
  // on as if the run had never stopped. So the lines of a step must be written before its checkpoint; 0 starts anew
  // but for the lines of step 0. The lines of a run's end (the evaluation on the test split, "done", what has "end")
  // are written after its last checkpoint: they go too, and are written again.
  MetricsLog(const std::string& path, int64_t last_step);

  // Appends `line`, an object with "kind" and "step". It is in the file when this returns. NaN becomes null.
  void write(const Json& line);

 private:
  std::string path_;
  Descriptor file_;
};

// All whole lines. A line that is not an object raises Error with its number; an unfinished last one is left out. A
// missing file is an empty log. One that takes more than kMaxMetricsMemory raises Error.
std::vector<Json> read_metrics(const std::string& path);

// Calls `take` for each line that is an object, whatever became of the others. Holds one line at a time. Returns how
// many lines could not be read and where the first is; "" for a whole log.
std::string for_each_readable_line(const std::string& path, const std::function<void(Json object)>& take);

}  // namespace sparsight
