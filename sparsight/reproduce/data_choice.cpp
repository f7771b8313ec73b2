#include "sparsight/reproduce/data_choice.h"

#include <algorithm>
#include <filesystem>

namespace sparsight {

std::string real_folder(const DataChoice& choice, const FigureRun& run) { return run.data + "/" + choice.folder; }

bool has_real(const DataChoice& choice, const FigureRun& run) {
  std::error_code error;
  const std::string folder = real_folder(choice, run);
  if (run.data.empty() || !std::filesystem::exists(folder, error)) return false;
  const auto is_there = [&](const std::string& file) { return std::filesystem::exists(folder + "/" + file, error); };
  if (!choice.files.empty() && std::none_of(choice.files.begin(), choice.files.end(), is_there)) return false;
  return !choice.is_complete || choice.is_complete(folder);
}

std::string substitute_for(const DataChoice& choice, const FigureRun& run) {
  return has_real(choice, run) ? "" : choice.substitute;
}

}  // namespace sparsight
