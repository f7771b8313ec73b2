#include "sparsight/data/sets/composite_cells.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "sparsight/core/error.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/transforms/pixel_ops.h"
#include "sparsight/data/transforms/resize.h"

namespace sparsight {
namespace {

// Ten glyphs of the size of MNIST's digits, the synthetic substitute for them.
Json glyph_digits(int64_t seed) {
  constexpr int64_t kDigits = 10;
  return {{"classes", kDigits}, {"super_classes", 0}, {"side", 28},       {"channels", 1},
          {"train", 10000},     {"test", 10000},      {"distractors", 0}, {"domains", Json::array({"clean"})},
          {"seed", seed}};
}

Json cell_settings(const CellOptions& options, int64_t seed) {
  if (options.cell_settings.size() > 1)
    fail_usage("data.cell_settings must be one table, [{...}], got ", options.cell_settings.size());
  Json settings = Json::object();
  if (options.cells == "glyphs") settings = glyph_digits(seed);
  if (options.cells == "mnist") settings["validation"] = 0;  // all of its training images make training cells
  if (!options.root.empty()) settings["root"] = options.root;
  if (!options.cell_settings.empty()) settings.update(options.cell_settings[0]);
  return settings;
}

CellShape cell_shape(const DataInfo& info, const CellOptions& options) {
  CellShape shape{info.channels, info.height, info.width, options.fit};
  if (options.cell_channels == 2) fail_usage("data.cell_channels must be 1 or 3, or 0, got 2");
  if (options.cell_channels > 0) shape.channels = options.cell_channels;
  if (options.cell_side > 0) shape.height = shape.width = options.cell_side;
  if (shape.height == 0 || shape.width == 0)
    fail_usage("the images of ", info.name, " vary in size; set data.cell_side to the size of a cell, such as 32");
  return shape;
}

}  // namespace

void CellOptions::declare(OptionSet& set) {
  set.text("cells", &cells,
           "dataset of the cells, any of those listed here; glyphs: ten of the size of MNIST's digits, which need no "
           "files");
  set.text("root", &root, "its root; empty: its name below SPARSIGHT_DATA or data/");
  set.tables("cell_settings", &cell_settings, "its other settings, as [{variant = \"kmnist\"}]");
  set.integer("cell_side", &cell_side, {0, 4096}, "height and width of a cell in pixels; 0: as the images are");
  set.choice("fit", &fit, {"crop", "stretch"},
             "how images get the size of a cell: resized to cover it and cropped at the centre, or each side resized");
  set.integer("cell_channels", &cell_channels, {0, 3}, "1: grey (luma), 3: RGB, 0: as the images are");
  set.tables("distractors", &distractors,
             "datasets whose images, of any class, are the distractors, as [{name = \"glyphs\"}]; empty: the classes "
             "of `cells` that are not in `digits`");
}

at::Tensor cell_image(const at::Tensor& image, const CellShape& shape) {
  at::Tensor cell = image;
  if (cell.size(0) == 3 && shape.channels == 1) cell = grayscale(cell).narrow(0, 0, 1);
  const int64_t height = cell.size(1), width = cell.size(2);
  if (height != shape.height || width != shape.width) {
    if (shape.fit == "stretch") {
      cell = resize_image(cell, shape.height, shape.width, "bilinear");
    } else {
      const double scale = std::max(static_cast<double>(shape.height) / static_cast<double>(height),
                                    static_cast<double>(shape.width) / static_cast<double>(width));
      const auto scaled = [&](int64_t side, int64_t least) {
        return std::max<int64_t>(least, std::llround(static_cast<double>(side) * scale));
      };
      cell = resize_image(cell, scaled(height, shape.height), scaled(width, shape.width), "bilinear");
      cell = cell.narrow(1, (cell.size(1) - shape.height) / 2, shape.height)
                 .narrow(2, (cell.size(2) - shape.width) / 2, shape.width);
    }
  }
  return cell.expand({shape.channels, shape.height, shape.width});
}

struct CellPool::Kept {
  std::mutex mutex;                            // of `cells`: loader threads share the pool
  std::vector<std::vector<at::Tensor>> cells;  // by class and number; undefined: not made yet
};

CellPool::CellPool(const DataSetPtr& set, CellShape shape) : pictures_(set), shape_(std::move(shape)) {
  constexpr int64_t kMaxKept = int64_t{256} << 20;
  if (pictures_.size() > kMaxKept / (shape_.channels * shape_.height * shape_.width)) return;
  kept_ = std::make_shared<Kept>();
  for (int64_t k = 0; k < std::ssize(set->info().classes); ++k)
    kept_->cells.emplace_back(static_cast<size_t>(pictures_.count(k)));
}

at::Tensor CellPool::cell(int64_t label, int64_t number) const {
  at::Tensor* kept = kept_ ? &kept_->cells[label][number] : nullptr;
  if (kept) {
    const std::lock_guard lock(kept_->mutex);
    if (kept->defined()) return *kept;
  }
  const at::Tensor image = pictures_.get(label, number).image;
  const bool in_memory = image.storage().use_count() > 1;  // a view of the dataset's array
  at::Tensor made = cell_image(image, shape_);
  if (!kept || (in_memory && made.is_alias_of(image))) return made;
  const std::lock_guard lock(kept_->mutex);
  *kept = made.clone(at::MemoryFormat::Contiguous);  // not the larger image that it is a part of
  return *kept;
}

at::Tensor CellPool::sample(int64_t label, RandomStream& random) const {
  return cell(label, random.below(pictures_.count(label)));
}

at::Tensor CellPool::sample_any(RandomStream& random) const {
  int64_t number = random.below(pictures_.size());
  int64_t label = 0;
  while (number >= pictures_.count(label)) number -= pictures_.count(label++);
  return cell(label, number);
}

CompositeCells read_cells(const CellOptions& options, int64_t seed, const DataContext& context) {
  const DataSplits set = data_sets().make(options.cells, cell_settings(options, seed), "data.cell_settings", context);
  const DataInfo& info = set.train->info();
  CompositeCells cells{info.name, info.classes, cell_shape(info, options), {}, {}, {}, {}};
  if (options.cells == "glyphs")
    for (size_t k = 0; k < cells.classes.size(); ++k) cells.classes[k] = std::to_string(k);
  cells.train = {set.train, cells.shape};
  cells.test = {set.test, cells.shape};
  for (const Json& entry : options.distractors) {
    Json settings = entry;
    if (!settings.contains("name") || !settings["name"].is_string())
      fail_usage("data.distractors has an entry without the name of a dataset, ", shown(entry),
                 "; write [{name = \"glyphs\"}]");
    const std::string name = settings["name"];
    settings.erase("name");
    const DataSplits others = data_sets().make(name, settings, "data.distractors", context);
    cells.train_distractors.emplace_back(others.train, cells.shape);
    cells.test_distractors.emplace_back(others.test, cells.shape);
  }
  return cells;
}

}  // namespace sparsight
