// The cells of composed images: the images of any dataset, by class, all of one size and number of channels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/core/random.h"
#include "sparsight/data/sets/class_pictures.h"

namespace sparsight {

struct CellOptions {
  std::string cells = "mnist";
  std::string root;
  Json cell_settings;  // [] or [{...}], of the dataset
  Json distractors;    // [{"name": ..., settings}, ...]
  int64_t cell_side = 0;
  int64_t cell_channels = 0;
  std::string fit = "crop";
  void declare(OptionSet& set);
};

struct CellShape {
  int64_t channels = 0, height = 0, width = 0;
  std::string fit = "crop";
};

// image: [C,H,W] uint8. Returns it in a shape: colours become luma (grey), grey is repeated; resized with antialiasing,
// "crop": so that it covers the shape, then its centre; "stretch": each side by itself.
at::Tensor cell_image(const at::Tensor& image, const CellShape& shape);

// The images of one split. Cells that have to be made (drawn, decoded or resized) are kept where all of them need at
// most 256 MB: a composite makes sixteen or more for each image, in every epoch.
class CellPool {
 public:
  CellPool() = default;
  CellPool(const DataSetPtr& set, CellShape shape);

  bool has(int64_t label) const { return pictures_.count(label) > 0; }
  at::Tensor sample(int64_t label, RandomStream& random) const;  // [C,H,W]; has(label)
  at::Tensor sample_any(RandomStream& random) const;             // of any class, each image as likely as the others

 private:
  struct Kept;
  at::Tensor cell(int64_t label, int64_t number) const;

  ClassPictures pictures_;
  CellShape shape_;
  std::shared_ptr<Kept> kept_;  // null: cells are not kept
};

struct CompositeCells {
  std::string name;                  // of the dataset
  std::vector<std::string> classes;  // names; glyphs are numbered, as what replaces digits
  CellShape shape;
  CellPool train, test;
  std::vector<CellPool> train_distractors, test_distractors;  // one for each of `distractors`
};

// Reads the datasets. `seed`: of generated images. Raises UsageError for images of different sizes without cell_side.
CompositeCells read_cells(const CellOptions& options, int64_t seed, const DataContext& context);

}  // namespace sparsight
