#include "sparsight/dist/group.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"

namespace sparsight::dist {

at::Tensor Group::all_gather(const at::Tensor& part) { return part.reshape({1, -1}); }

at::Tensor Group::all_to_all(const at::Tensor& rows, const std::vector<int64_t>&, const std::vector<int64_t>&) {
  return rows;
}

std::shared_ptr<Group> Group::subgroup(const std::string&, const std::vector<int64_t>&) {
  return std::make_shared<Group>();
}

std::vector<std::string> Group::all_gather_bytes(const std::string& bytes) {
  if (size() == 1) return {bytes};
  const at::Tensor lengths = all_gather(at::full({1}, static_cast<int64_t>(bytes.size()), at::kLong)).reshape({-1});
  const int64_t longest = lengths.max().item<int64_t>();
  at::Tensor padded = at::zeros({longest}, at::kByte);
  std::copy(bytes.begin(), bytes.end(), padded.data_ptr<uint8_t>());
  const at::Tensor all = all_gather(padded).contiguous();
  std::vector<std::string> parts;
  for (int64_t r = 0; r < size(); ++r) {
    const auto* const from = reinterpret_cast<const char*>(all.const_data_ptr<uint8_t>()) + r * longest;
    parts.emplace_back(from, static_cast<size_t>(lengths[r].item<int64_t>()));
  }
  return parts;
}

void Group::broadcast(at::Tensor&) {}

std::string Group::broadcast(const std::string& bytes) {
  if (size() == 1) return bytes;
  at::Tensor length = at::full({1}, static_cast<int64_t>(bytes.size()), at::kLong);
  broadcast(length);
  at::Tensor content = at::empty({length.item<int64_t>()}, at::kByte);
  if (leads()) std::copy(bytes.begin(), bytes.end(), content.data_ptr<uint8_t>());
  if (content.numel() > 0) broadcast(content);
  const auto* const from = reinterpret_cast<const char*>(content.const_data_ptr<uint8_t>());
  return {from, static_cast<size_t>(content.numel())};
}

RankCounts Group::counts(int64_t own) {
  if (size() == 1) return {0, own};
  const at::Tensor each = all_gather(at::full({1}, own, at::kLong)).reshape({-1});
  return {each.narrow(0, 0, rank()).sum().item<int64_t>(), each.sum().item<int64_t>()};
}

bool Group::any(bool value) {
  if (size() == 1) return value;
  return all_gather(at::full({1}, value ? 1 : 0, at::kByte)).any().item<bool>();
}

void check_same(Group& group, const std::string& what, const std::string& text) {
  const std::vector<std::string> all = group.all_gather_bytes(text);
  for (size_t r = 1; r < all.size(); ++r)
    if (all[r] != all.front())
      fail("rank ", r, " was started with another ", what, " than rank 0; start all ranks with the same command");
}

}  // namespace sparsight::dist
