#include "sparsight/papers/mobile_vmoe/experiments/mobile_options.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::mobile_vmoe {
namespace {

constexpr int64_t kGenerated = 25000, kGeneratedTest = 2000, kCifarClasses = 100, kCifarGroups = 20;
constexpr int64_t kMaxDepth = 100, kMaxWidth = 4096;

bool read_number(std::string_view text, int64_t most, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 1 && number <= most;
}

}  // namespace

void MobileOptions::declare(OptionSet& set) {
  repeats.declare(set);
  set.text("size", &size, "the transformer: blocks x width, as 6x64");
  set.integer("patch", &patch, {1, 32}, "patch size in pixels");
  set.integers("stem", &stem, {1, 16384},
               "channels of residual convolution blocks before the patch embedding; []: none");
  set.choice("pool", &pool, {"class", "mean"}, "what the head reads: the class token, or the mean of the patch tokens");
  set.integer("experts", &experts, {2, 1024}, "experts E of an MoE layer, where the figure does not vary them");
  set.integer("k", &k, {1, 1024}, "experts of an image, where the figure does not vary them");
  set.integer("layers", &layers, {1, 100}, "MoE layers L, the last blocks, where the figure does not vary them");
  set.real("lambda", &lambda, {0, 1000}, "weight of the guided loss, where the figure does not vary it");
  set.integer("groups", &groups, {2, 48}, "super-classes of generated images");
  set.integer("classes_per_group", &classes_per_group, {2, 20}, "classes of each of them");
  set.integer("train_images", &train_images, {0, 100000000}, "training images; 0: all, of generated ones 25,000");
  set.integer("test_images", &test_images, {0, 100000000}, "test images; 0: all, of generated ones 2,000");
  set.integer("epochs", &epochs, {1, 100000}, "epochs of each training");
  set.integer("batch", &batch, {1, 100000}, "images per step");
  set.real("lr", &lr, {0, 1000}, "learning rate of AdamW");
  set.real("beta2", &beta2, {0, 1}, "its decay rate of squared gradients");
  set.real("weight_decay", &weight_decay, {0, 1000}, "its weight decay");
  set.real("warmup_epochs", &warmup_epochs, {0, 100000}, "epochs until the learning rate is reached");
  set.choice("precision", &precision, {"fp32", "bf16", "auto"}, "of training; auto: bf16 where the CPU has it");
}

MobileOptions mobile_options(Scale scale) {
  MobileOptions options;
  options.repeats.trials = by_scale<int64_t>(scale, 1, 3, 3);
  if (scale != Scale::small) options.stem = {}, options.pool = "class", options.lr = 1e-3, options.beta2 = 0.999;
  if (scale == Scale::paper) {
    options.size = "12x192", options.epochs = 300, options.warmup_epochs = 5;
    options.patch = 4, options.batch = 128, options.precision = "auto";
  }
  if (scale != Scale::smoke) return options;
  options.size = "3x16", options.experts = 4, options.groups = 4, options.classes_per_group = 2;
  options.train_images = 64, options.test_images = 32, options.epochs = 1, options.batch = 32;
  options.warmup_epochs = 0;
  return options;
}

VitSize read_size(const std::string& text) {
  VitSize size;
  const std::string_view all = text;
  const size_t cross = all.find('x');
  if (cross == std::string_view::npos || !read_number(all.substr(0, cross), kMaxDepth, size.depth) ||
      !read_number(all.substr(cross + 1), kMaxWidth, size.width))
    fail_usage("a size is blocks x width, as \"6x64\", up to ", kMaxDepth, "x", kMaxWidth, ", got ", shown(text));
  return size;
}

int64_t count_heads(int64_t width) {
  if (width == 384) return 6;
  if (width == 192 || width == 96) return 3;
  const int64_t heads = std::max<int64_t>(1, width / 32);
  return width % heads == 0 ? heads : 1;
}

const DataChoice& mobile_data() {
  static const DataChoice choice{"cifar100", "the generated hierarchy for CIFAR-100"};
  return choice;
}

Json data_section(const MobileOptions& options, const FigureRun& run, double held_out) {
  const auto images = [](int64_t wanted, int64_t otherwise) { return wanted > 0 ? wanted : otherwise; };
  if (run.data.empty())
    return {{"name", "hierarchy"},
            {"groups", options.groups},
            {"classes_per_group", options.classes_per_group},
            {"side", kImageSide},
            {"train", images(options.train_images, kGenerated)},
            {"validation", images(options.test_images, kGeneratedTest)},
            {"test", images(options.test_images, kGeneratedTest)}};
  return {{"name", "cifar100"},
          {"root", real_folder(mobile_data(), run)},
          {"validation", held_out},
          {"train_limit", options.train_images},
          {"test_limit", options.test_images}};
}

// Generated images are not flipped: the mirror image of a texture is another one.
Json transform_section(const FigureRun& run) {
  if (run.data.empty()) {
    const Json normalize = {{"op", "normalize"}, {"mean", {0.5}}, {"std", {0.25}}};
    return {{"train", Json::array({normalize})}, {"eval", Json::array({normalize})}};
  }
  const Json normalize = {{"op", "normalize"}, {"preset", "cifar100"}};
  const Json crop = {{"op", "random_crop"}, {"size", kImageSide}, {"padding", 4}}, flip = {{"op", "flip"}};
  return {{"train", Json::array({crop, flip, normalize})}, {"eval", Json::array({normalize})}};
}

ClassCounts class_counts(const MobileOptions& options, const FigureRun& run) {
  if (run.data.empty()) return {options.groups * options.classes_per_group, options.groups};
  return {kCifarClasses, kCifarGroups};
}

int64_t training_images(const MobileOptions& options, const FigureRun& run) {
  constexpr int64_t kPublished = 50000, kBytes = 3074;  // of CIFAR-100, and of one image in its file
  int64_t images = run.data.empty() ? kGenerated : kPublished;
  if (!run.data.empty())
    for (const char* folder : {"/", "/cifar-100-binary/"}) {
      std::error_code error;
      const auto bytes = std::filesystem::file_size(real_folder(mobile_data(), run) + folder + "train.bin", error);
      if (!error) images = static_cast<int64_t>(bytes) / kBytes;
    }
  if (options.train_images == 0) return images;
  return run.data.empty() ? options.train_images : std::min(options.train_images, images);
}

std::vector<std::string> mobile_notes(const MobileOptions& options, const FigureRun& run) {
  const ClassCounts counts = class_counts(options, run);
  std::string augmentation = "none, since the mirror image of a texture is another one";
  if (!run.data.empty()) augmentation = "random crops with 4 pixels of padding, flips";
  return {cat("Trials: ", options.repeats.trials,
              ", each with other weights and another order of the images. Training: ", options.epochs, " epochs of ",
              training_images(options, run), " images in batches of ", options.batch, ", AdamW at ",
              shown_number(options.lr), " (beta2 ", shown_number(options.beta2), ") with ",
              shown_number(options.warmup_epochs), " epochs of warm-up and a cosine to 0, weight decay ",
              shown_number(options.weight_decay), ", gradients clipped to norm 1, precision ", options.precision,
              "; augmentation: ", augmentation, ". The same for every model. The final weights are tested."),
          cat("Data: ", counts.classes, " classes in ", counts.groups,
              " groups of their own, which are the super-classes "
              "where E is ",
              counts.groups,
              ". For every other E the classes are divided by clustering the confusions of a "
              "dense model of size ",
              options.size,
              " on images held out from its training: a tenth of the training images, "
              "of generated data the validation split."),
          cat("Where a figure does not vary them: size ", options.size, " (blocks x width), E = ", options.experts,
              ", k = ", options.k, ", L = ", options.layers, ", lambda = ", shown_number(options.lambda),
              "; images of ", kImageSide, " pixels, patches of ", options.patch,
              options.stem.empty() ? std::string()
                                   : cat(" behind residual convolution blocks of ", shown(Json(options.stem)),
                                         " channels with batch norm"),
              options.pool == "mean" ? "; the head reads the mean of the patch tokens."
                                     : "; the head reads the class token.")};
}

}  // namespace sparsight::mobile_vmoe
