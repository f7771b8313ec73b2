#include "sparsight/data/sets/backgrounds.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/empty.h>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/readers/folder.h"
#include "sparsight/data/readers/image.h"
#include "sparsight/data/sets/glyph_painter.h"

namespace sparsight {
namespace {

constexpr size_t kTestEvery = 5;

std::vector<std::string> image_files(const std::string& folder) {
  std::error_code error;
  IgnoredFiles ignored;
  std::vector<std::string> files = images_below(folder, ignored, error);
  if (error) fail("data.backgrounds: ", printable(folder), " cannot be read: ", error.message());
  warn_of_ignored(ignored);
  return files;
}

at::Tensor shrunk(const at::Tensor& image) {
  const int64_t side = std::min(image.size(1), image.size(2));
  const at::Tensor square =
      image.narrow(1, (image.size(1) - side) / 2, side).narrow(2, (image.size(2) - side) / 2, side);
  return at::adaptive_avg_pool2d(square.to(at::kFloat), {kBackgroundSide, kBackgroundSide})
      .add(0.5)
      .clamp(0, 255)
      .to(at::kByte);
}

BackgroundSampler any_of(std::vector<at::Tensor> pictures) {
  return [pictures = std::move(pictures)](RandomStream& random) {
    return pictures[static_cast<size_t>(random.below(std::ssize(pictures)))];
  };
}

}  // namespace

Backgrounds folder_backgrounds(const std::string& folder, int64_t limit) {
  const std::vector<std::string> files = image_files(folder);
  const size_t count = std::min(files.size(), static_cast<size_t>(limit));
  if (count < 2)
    fail("data.backgrounds: ", printable(folder), " has ", files.size(),
         " images; at least 2 are needed, one for training and one for testing");
  std::vector<at::Tensor> train, test;
  for (size_t i = 0; i < count; ++i) {
    const at::Tensor picture = shrunk(read_image(files[i * files.size() / count], {.channels = 3}));
    const bool tests = count < kTestEvery ? i == count - 1 : i % kTestEvery == kTestEvery - 1;
    (tests ? test : train).push_back(picture);
  }
  return {any_of(std::move(train)), any_of(std::move(test))};
}

Backgrounds generated_backgrounds(int64_t seed) {
  const auto generated = [seed](const std::string& purpose) -> BackgroundSampler {
    return [seed, purpose](RandomStream& random) {
      static const GlyphShape nothing;
      GlyphPicture picture;
      picture.glyph = &nothing;
      picture.domain = "textured";
      picture.distractors = 6;
      GlyphCanvas canvas(kBackgroundSide);
      const auto number = static_cast<uint64_t>(random.below(int64_t{1} << 40));
      paint_glyph(picture, RandomStream(static_cast<uint64_t>(seed), purpose, number), canvas);
      at::Tensor image = at::empty({3, kBackgroundSide, kBackgroundSide}, at::kByte);
      canvas.write(image.data_ptr<uint8_t>(), 3);
      return image;
    };
  };
  return {generated("backgrounds.train"), generated("backgrounds.test")};
}

}  // namespace sparsight
