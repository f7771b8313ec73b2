#include "sparsight/data/corruptions/corruptions.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"

namespace sparsight::corruptions {
namespace {

constexpr int64_t kSmallSide = 64;

}  // namespace

const std::vector<Corruption>& all_corruptions() {
  static const std::vector<Corruption> all = {
      {"gaussian_noise", "noise", gaussian_noise, .886428},
      {"shot_noise", "noise", shot_noise, .894468},
      {"impulse_noise", "noise", impulse_noise, .922640},
      {"defocus_blur", "blur", defocus_blur, .819880},
      {"glass_blur", "blur", glass_blur, .826268},
      {"motion_blur", "blur", motion_blur, .785948},
      {"zoom_blur", "blur", zoom_blur, .798360},
      {"snow", "weather", snow, .866816},
      {"frost", "weather", frost, .826572},
      {"fog", "weather", fog, .819324},
      {"brightness", "weather", brightness, .564592},
      {"contrast", "digital", contrast, .853204},
      {"elastic_transform", "digital", elastic_transform, .646056},
      {"pixelate", "digital", pixelate, .717840},
      {"jpeg_compression", "digital", jpeg_compression, .606500},
  };
  return all;
}

const Corruption& find_corruption(const std::string& name) {
  std::vector<std::string> names;
  for (const Corruption& corruption : all_corruptions()) names.emplace_back(corruption.name);
  return all_corruptions().at(find_position(name, names, "corruption"));
}

Picture corrupted(const Corruption& corruption, const Picture& picture, int64_t severity, RandomStream& random) {
  SPARSIGHT_CHECK(severity >= 1 && severity <= kSeverities);
  const bool small = std::max(picture.height, picture.width) <= kSmallSide;
  Picture result = corruption.corrupt(picture, static_cast<int>(severity) - 1, small, random);
  clip(result);
  return result;
}

}  // namespace sparsight::corruptions
