// A router's input made of tokens alone.
#pragma once

#include "sparsight/moe/router.h"

namespace sparsight::test {

inline RouterInput pool(const at::Tensor& tokens, uint64_t step = 0) {
  return {tokens, {1, tokens.size(0), 0, 0, 0}, "blocks.1.mlp", {7, step}};
}

}  // namespace sparsight::test
