#include "sparsight/papers/gmoe/figures/kept_weights.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/data/fingerprint.h"
#include "sparsight/io/file_lock.h"
#include "sparsight/reproduce/train_job.h"

namespace sparsight::gmoe {
namespace {

FileLock lock_of_weights(const std::string& file) {
  while (true) {
    if (interrupted()) fail("interrupted");
    if (std::optional<FileLock> lock = FileLock::try_take(file + ".lock")) return std::move(*lock);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

}  // namespace

std::string trained_weights(const Json& sections, const FigureRun& run) {
  const std::string folder = run.folder + "/models";
  const std::string weights = cat(folder, "/", fingerprint_texts({"gmoe 1", sections.dump()}), ".safetensors");
  if (std::filesystem::exists(weights)) return weights;
  create_folder(folder);
  const FileLock lock = lock_of_weights(weights);
  if (!std::filesystem::exists(weights)) train_in_job(sections, run.job_folder, weights);
  return weights;
}

}  // namespace sparsight::gmoe
