#include "sparsight/reproduce/write_outcome.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/log.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/io/file_lock.h"
#include "sparsight/reproduce/chart_images.h"
#include "sparsight/reproduce/result_charts.h"
#include "sparsight/reproduce/result_page.h"
#include "sparsight/reproduce/result_text.h"
#include "sparsight/reproduce/trial_files.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

// Removes unfinished files of a process that was killed here. (Other processes may be writing images: those stay.)
void remove_half_written(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    const bool ours = name.starts_with("result.") || name.starts_with("trials.") || name.starts_with("report.html") ||
                      name.starts_with("chart-");
    if (ours && name.ends_with(kTemporaryEnding)) fs::remove(entry.path(), error);
  }
}

std::string pretty(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::vector<std::pair<std::string, std::string>> read_pictures(const FigureOutcome& outcome) {
  std::vector<std::pair<std::string, std::string>> pictures;
  for (const FigurePicture& picture : outcome.figure->pictures) {
    std::string bytes;
    try {
      bytes = read_file(outcome.run.folder + "/" + picture.file, kMaxPictureBytes);
    } catch (const Error&) {
    }  // the page says that it is missing
    pictures.emplace_back(picture.caption, bytes);
  }
  return pictures;
}

}  // namespace

void write_outcome(const FigureOutcome& outcome, const std::string& python) {
  const std::string& folder = outcome.run.folder;
  const Descriptor alone = wait_for_folder(folder);  // processes that share a sweep may finish at the same time
  remove_half_written(folder);
  write_file_atomically(folder + "/result.csv", result_csv(outcome));
  write_file_atomically(folder + "/result.json", checked_json_file(result_json(outcome)));
  write_file_atomically(folder + "/trials.csv", trials_csv(outcome));
  write_file_atomically(folder + "/trials.jsonl", trials_jsonl(outcome));
  write_file_atomically(folder + "/result.md", result_markdown(outcome));
  write_file_atomically(folder + "/report.html", result_page(outcome, read_pictures(outcome)));
  std::vector<std::string> names;
  for (const Chart& chart : result_charts(outcome)) {
    names.push_back(cat(folder, "/chart-", names.size() + 1));
    write_file_atomically(names.back() + ".vl.json", pretty(standalone_chart(chart)));
  }
  if (const std::string problem = draw_charts(names, python_program(python)); !problem.empty()) log_warning(problem);
}

}  // namespace sparsight
