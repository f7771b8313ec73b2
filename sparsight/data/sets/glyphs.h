// glyphs: the built-in dataset, generated on demand. A class is a glyph, a super-class is the shape of the frame around
// it, a domain is a style. Image i of a split is a pure function of (seed, split, i) and has the same bits on every
// machine.
#pragma once

#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"

namespace sparsight {

struct DataContext;

struct GlyphsOptions {
  int64_t classes = 12;
  int64_t super_classes = 4;
  int64_t side = 32;
  int64_t channels = 3;
  int64_t train = 12000;
  int64_t validation = 1200;
  int64_t test = 2400;
  int64_t distractors = 4;
  std::vector<std::string> domains = {"clean", "textured", "sketch", "inverted"};
  std::vector<std::string> train_domains;
  std::vector<std::string> test_domains;
  int64_t seed = 0;
  void declare(OptionSet& set);
};

// Raises UsageError for an unknown domain.
DataSplits make_glyphs(const GlyphsOptions& options, const DataContext& context);

}  // namespace sparsight
