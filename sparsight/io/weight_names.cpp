#include "sparsight/io/weight_names.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/names/namings.h"
#include "sparsight/io/sharded_weights.h"
#include "sparsight/io/torch_pickle.h"

namespace sparsight {
namespace {

at::Tensor tensor_named(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return tensor;
  return {};
}

// The authors' weights of DINOv2 have a token for masked patches, which only training reads, and with registers a
// position of the class token, which timm adds to that token. There is no way back: the sum does not tell its parts.
NamedTensors with_our_names_of_dinov2(NamedTensors tensors) {
  std::erase_if(tensors, [](const auto& entry) { return entry.first == "mask_token"; });
  const at::Tensor positions = tensor_named(tensors, "pos_embed");
  const bool registers = tensor_named(tensors, "register_tokens").defined();
  if (!registers || !positions.defined() || positions.dim() != 3 || positions.size(1) < 2) return tensors;
  for (auto& [name, tensor] : tensors) {
    if (name == "register_tokens") name = "reg_token";
    if (name == "cls_token" && tensor.dim() == 3 && tensor.size(2) == positions.size(2))
      tensor = tensor.add(positions.slice(1, 0, 1));
    if (name == "pos_embed") tensor = positions.slice(1, 1).contiguous();
  }
  return tensors;
}

}  // namespace

NamedTensors with_our_names(NamedTensors tensors) {
  for (const WeightNaming& naming : weight_namings())
    if (is_named_by_them(naming, tensors)) {
      tensors = to_our_names(naming, tensors);
      break;
    }
  return tensor_named(tensors, "mask_token").defined() ? with_our_names_of_dinov2(std::move(tensors)) : tensors;
}

NamedTensors with_names_of(const std::string& library, const NamedTensors& tensors) {
  find_position(library, naming_libraries(), "library");
  std::vector<std::string> others;
  for (const WeightNaming& naming : weight_namings()) {
    if (!is_named_by_us(naming, tensors)) continue;
    if (naming.library == library) return to_their_names(naming, tensors);
    const bool is_new = std::ranges::find(others, naming.library) == others.end();
    if (is_new && std::ranges::find(naming_libraries(), naming.library) != naming_libraries().end())
      others.push_back(naming.library);
  }
  if (others.empty())
    fail_usage("no library is known to have a model with these tensors",
               tensors.empty() ? std::string() : ", of which the first is " + printable(tensors.front().first));
  fail_usage(library, " has no such model; these libraries have one: ", join(others));
}

NamedTensors read_weights(const std::string& path) {
  const auto wanted = [](const std::string& name) { return !is_training_name(name); };
  if (is_sharded(path)) return with_our_names(ShardedWeights(path).read_all(wanted).tensors);
  if (is_torch_pickle(path)) return with_our_names(read_torch_pickle(path));
  return with_our_names(read_safetensors(path, wanted).tensors);
}

}  // namespace sparsight
