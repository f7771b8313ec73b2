#include "sparsight/dist/rank_zero.h"

#include <algorithm>
#include <exception>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

namespace sparsight::dist {

std::vector<std::string> gather_bytes(Group& group, const std::string& bytes) {
  if (group.size() == 1) return {bytes};
  const auto size = static_cast<size_t>(group.size());
  const auto own = static_cast<int64_t>(bytes.size());
  const at::Tensor lengths = group.all_gather(at::full({1}, own, at::kLong)).reshape({-1}).contiguous();
  if (lengths.max().item<int64_t>() == 0) return std::vector<std::string>(group.leads() ? size : 0);
  std::vector<int64_t> sent(size, 0), received(size, 0);
  sent.front() = own;
  if (group.leads()) received.assign(lengths.const_data_ptr<int64_t>(), lengths.const_data_ptr<int64_t>() + size);
  at::Tensor rows = at::empty({own}, at::kByte);
  std::copy(bytes.begin(), bytes.end(), rows.data_ptr<uint8_t>());
  const at::Tensor all = group.all_to_all(rows, sent, received).contiguous();
  std::vector<std::string> parts;
  if (!group.leads()) return parts;
  const auto* from = reinterpret_cast<const char*>(all.const_data_ptr<uint8_t>());
  for (const int64_t length : received) {
    parts.emplace_back(from, static_cast<size_t>(length));
    from += length;
  }
  return parts;
}

std::string from_rank_zero(Group& group, FunctionRef<std::string()> make) {
  std::string answer;  // its first byte: the exit code of an error, or 0
  std::exception_ptr error;
  if (group.leads()) {
    try {
      answer = '\0' + make();
    } catch (const Error& raised) {
      answer = static_cast<char>(raised.exit_code()) + std::string(raised.what());
      error = std::current_exception();
    }
  }
  answer = group.broadcast(answer);
  if (error) std::rethrow_exception(error);
  if (answer.front() != '\0') throw RankZeroError(answer.substr(1), answer.front());
  return answer.substr(1);
}

}  // namespace sparsight::dist
