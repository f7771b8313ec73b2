// What the experiments train on and for how long. Sizes are written as in the paper: blocks x width, "6x64".
#pragma once

#include <string>
#include <vector>

#include "sparsight/reproduce/figure_settings.h"

namespace sparsight::mobile_vmoe {

struct MobileOptions {
  Repeats repeats;
  std::string size = "6x64";
  int64_t patch = 8;
  std::vector<int64_t> stem = {16, 32, 64};
  std::string pool = "mean";
  int64_t experts = 10, k = 1, layers = 2;
  double lambda = 0.3;
  int64_t groups = 10, classes_per_group = 5;  // of generated images
  int64_t train_images = 0, test_images = 0, epochs = 8, batch = 64;
  double lr = 2e-3, beta2 = 0.99, weight_decay = 0.05, warmup_epochs = 1;
  std::string precision = "fp32";
  void declare(OptionSet& set);
};

// Scale paper has the paper's transformers and numbers of epochs, on data that is not ImageNet-1k; scale small has
// convolution blocks before them and pools tokens by their mean, which learns in fewer epochs.
MobileOptions mobile_options(Scale scale);

// "6x64" as blocks and width. Raises UsageError for other texts.
struct VitSize {
  int64_t depth = 0, width = 0;
};
VitSize read_size(const std::string& text);
// The paper's attention heads: 2 for width 64, 3 for 96 and 192, 6 for 384; else one for each 32 channels.
int64_t count_heads(int64_t width);

// CIFAR-100, or generated images with groups where a run has no data.
const DataChoice& mobile_data();
// The section [data]. held_out: the share of the training images of a real set that becomes the validation split;
// generated sets have one anyway.
Json data_section(const MobileOptions& options, const FigureRun& run, double held_out = 0);
Json transform_section(const FigureRun& run);

// How many classes the data have, and how many super-classes of their own.
struct ClassCounts {
  int64_t classes = 0, groups = 0;
};
ClassCounts class_counts(const MobileOptions& options, const FigureRun& run);
// The number of training images; that of a real set by the size of its file.
int64_t training_images(const MobileOptions& options, const FigureRun& run);
inline constexpr int64_t kImageSide = 32;  // of all images

// Data, model and training of a run, for Figure::run_notes.
std::vector<std::string> mobile_notes(const MobileOptions& options, const FigureRun& run);

}  // namespace sparsight::mobile_vmoe
