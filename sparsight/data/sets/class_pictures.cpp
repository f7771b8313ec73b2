#include "sparsight/data/sets/class_pictures.h"

#include "sparsight/core/error.h"
#include "sparsight/data/sets/cifar.h"
#include "sparsight/data/sets/glyphs.h"

namespace sparsight {

ClassPictures::ClassPictures(DataSetPtr set) : set_(std::move(set)), of_class_(set_->info().classes.size()) {
  need_single_labels(set_->info(), "a dataset that is made of the images of another");
  for (int64_t i = 0; i < set_->size(); ++i) of_class_.at(static_cast<size_t>(set_->label(i))).push_back(i);
}

Sample ClassPictures::get(int64_t label, int64_t number) const {
  return set_->get(of_class_.at(static_cast<size_t>(label)).at(static_cast<size_t>(number)));
}

PictureParts picture_parts(const std::string& source, const std::string& root, int64_t seed) {
  if (source == "glyphs") {
    GlyphsOptions options;
    options.classes = 10;
    options.super_classes = 0;
    options.train = 50000;
    options.test = 10000;
    options.distractors = 0;
    options.domains = {"clean", "textured"};
    options.seed = seed;
    const DataSplits glyphs = make_glyphs(options, {});
    return {ClassPictures(glyphs.train), ClassPictures(glyphs.test)};
  }
  Cifar10Options options;
  options.root = root;
  options.splits.validation = 0;
  const DataSplits cifar = make_cifar10(options, {});
  return {ClassPictures(cifar.train), ClassPictures(cifar.test)};
}

at::Tensor halved(const at::Tensor& image) {
  const int64_t channels = image.size(0), height = image.size(1) / 2, width = image.size(2) / 2;
  SPARSIGHT_CHECK(2 * height == image.size(1) && 2 * width == image.size(2));
  return image.to(at::kInt)
      .reshape({channels, height, 2, width, 2})
      .sum({2, 4}, false, at::kInt)
      .add(2)
      .floor_divide(4)
      .to(at::kByte);
}

int64_t checked_count(int64_t requested, int64_t minimum, int64_t classes, const std::string& part) {
  if (requested > minimum * classes)
    fail("data.", part, " = ", requested, ", but each of the ", classes, " classes has only ", minimum,
         " images: at most ", minimum * classes);
  const int64_t count = requested == 0 ? minimum * classes : requested;
  if (count == 0) fail("the ", part, " split has a class without images");
  return count;
}

}  // namespace sparsight
