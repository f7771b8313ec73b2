#include "sparsight/data/shared_images.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/progress.h"
#include "sparsight/data/hash.h"

namespace sparsight {
namespace {

constexpr int64_t kComparedAtOnce = 4096;  // images, between two looks at an interrupt

struct Identity {
  std::string id, content;  // "": unknown
};

Identity image_identity(const DataSet& set, int64_t index) {
  try {
    const Sample sample = set.get(index);
    const at::Tensor image = sample.image.contiguous();
    Hasher hasher;
    for (const int64_t size : image.sizes()) hasher.add(&size, sizeof size);
    hasher.add(image.const_data_ptr(), image.nbytes());
    return {sample.id, hasher.hex()};
  } catch (const Error&) {
    return {};  // who uses the image says what is wrong with it
  }
}

std::vector<Identity> image_identities(const DataSet& set) {
  std::vector<Identity> identities(static_cast<size_t>(set.size()));
  Progress progress("compare", set.size(), "images");
  for (int64_t begin = 0; begin < set.size(); begin += kComparedAtOnce) {
    if (interrupted()) fail("interrupted while images were compared");
    const int64_t end = std::min(set.size(), begin + kComparedAtOnce);
    at::parallel_for(begin, end, 16, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) identities[static_cast<size_t>(i)] = image_identity(set, i);
    });
    progress.update(end);
  }
  progress.finish();
  return identities;
}

}  // namespace

ImageIdentities::ImageIdentities(const DataSet& part) {
  const std::vector<Identity> identities = image_identities(part);
  for (size_t i = 0; i < identities.size(); ++i) {
    const Identity& identity = identities[i];
    ids_.push_back(identity.id);
    if (!identity.id.empty()) by_id_[identity.id].push_back(static_cast<int64_t>(i));
    if (!identity.content.empty()) by_content_[identity.content].push_back(static_cast<int64_t>(i));
  }
}

SharedImages ImageIdentities::shared_with(const DataSet& other) const {
  std::vector<bool> same_id(ids_.size()), same_content(ids_.size());
  SharedImages shared;
  const auto mark = [&](const auto& known, const std::string& key, const std::string& id, std::vector<bool>& same) {
    const auto found = known.find(key);
    if (key.empty() || found == known.end()) return;
    for (const int64_t i : found->second) same[static_cast<size_t>(i)] = true;
    if (shared.example.empty()) shared.example = cat(ids_[found->second.front()], " = ", id);
  };
  for (const Identity& identity : image_identities(other)) {
    mark(by_id_, identity.id, identity.id, same_id);
    mark(by_content_, identity.content, identity.id, same_content);
  }
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (same_id[i])
      shared.by_id.push_back(static_cast<int64_t>(i));
    else if (same_content[i])
      shared.by_content.push_back(static_cast<int64_t>(i));
  }
  return shared;
}

}  // namespace sparsight
