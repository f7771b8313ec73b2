#include "sparsight/papers/gmoe/figures/protocol_data.h"

#include <filesystem>
#include <functional>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/data/export_images.h"
#include "sparsight/data/register_data.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/atomic_folder.h"
#include "sparsight/io/file_lock.h"

namespace sparsight::gmoe {
namespace {

DataSplits glyphs(Json settings) {
  settings["super_classes"] = 0;
  return data_sets().make("glyphs", settings, "data", DataContext{});
}

// The folder `name` below that of the run, which `make` fills.
std::string made_once(const std::string& name, const FigureRun& run,
                      const std::function<void(const std::string& folder)>& make) {
  const std::string folder = run.folder + "/" + name;
  create_folder(run.folder);
  const Descriptor lock = wait_for_folder(run.folder);
  if (!std::filesystem::exists(folder)) make(folder);
  return folder;
}

// Four bytes, the highest first.
std::string big_endian(int64_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

// Writes what data/readers/idx.h reads.
void write_idx_files(const DataSet& set, const std::string& begin) {
  const DataInfo& info = set.info();
  std::string images("\0\0\x08\x03", 4), labels("\0\0\x08\x01", 4);
  for (const int64_t size : {set.size(), info.height, info.width}) images += big_endian(size);
  labels += big_endian(set.size());
  for (int64_t i = 0; i < set.size(); ++i) {
    const Sample sample = set.get(i);
    const at::Tensor pixels = sample.image.contiguous();
    images.append(static_cast<const char*>(pixels.const_data_ptr()), pixels.nbytes());
    labels += static_cast<char>(sample.label);
  }
  write_file_atomically(begin + "-images-idx3-ubyte", images);
  write_file_atomically(begin + "-labels-idx1-ubyte", labels);
}

}  // namespace

const std::vector<std::string>& glyph_environments() {
  static const std::vector<std::string> names{"clean", "inverted", "sketch", "textured"};
  return names;
}

std::string glyph_domains(const GlyphDomains& wanted, const FigureRun& run) {
  return made_once("domains", run, [&](const std::string& folder) {
    const int64_t images = wanted.images * std::ssize(glyph_environments());
    DataSplits splits = glyphs(
        {{"classes", wanted.classes}, {"distractors", wanted.distractors}, {"side", wanted.side}, {"train", images}});
    splits.validation.reset(), splits.test.reset();  // the protocol makes splits of its own
    export_images(splits, folder, "domain", [](int64_t, int64_t) {});
  });
}

std::string glyph_mnist(int64_t images, const FigureRun& run) {
  return made_once("mnist", run, [&](const std::string& folder) {
    const DataSplits splits = glyphs(
        {{"classes", 10}, {"channels", 1}, {"side", 28}, {"train", images}, {"validation", 1}, {"test", images / 6}});
    AtomicFolder made(folder);
    write_idx_files(*splits.train, made.aside() + "/train");
    write_idx_files(*splits.test, made.aside() + "/t10k");
    made.commit();
  });
}

}  // namespace sparsight::gmoe
