#include "sparsight/ops/data_parallel.h"

#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include "sparsight/ops/no_second_derivative.h"
#include "sparsight/ops/packed_cache.h"
#include "sparsight/ops/product_type.h"

namespace sparsight {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kFewestImages = 8;  // of a thread: with fewer, packing weights for each thread takes too long

// Calls body(i) for each i of 0 .. count-1 on a thread of its own, with the caller's modes. In a parallel region of
// torch's, so that operations inside use one thread.
template <class Body>
void on_each_thread(int64_t count, const Body& body) {
  const at::ThreadLocalState state;
  const ProductType products = product_type();
  cpu::PackedCopies* const packed = cpu::PackedCopies::current();
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    const at::ThreadLocalStateGuard guard(state);
    const ProductScope product_scope(products);
    const PackedCacheScope packed_scope(packed);
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

// The parts of a batch have graphs of their own, from part_images to part_results.
class DataParallel : public torch::autograd::Function<DataParallel> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& images, const ImageFunction& f, int64_t parts) {
    const at::AutoGradMode grad_mode(true);
    const int64_t count = images.size(0);
    std::vector<at::Tensor> from(static_cast<size_t>(parts)), to(from), out(from);
    on_each_thread(parts, [&](int64_t part) {
      const int64_t first = count * part / parts, end = count * (part + 1) / parts;
      const auto i = static_cast<size_t>(part);
      from[i] = images.detach().narrow(0, first, end - first).requires_grad_(true);
      to[i] = f(from[i], first);
      out[i] = to[i].detach();
    });
    context->saved_data["part_images"] = from;
    context->saved_data["part_results"] = to;
    return at::cat(out);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    no_second_derivative("images that threads share have");
    const std::vector<at::Tensor> from = context->saved_data["part_images"].toTensorVector(),
                                  to = context->saved_data["part_results"].toTensorVector();
    const bool retain_graph = torch::autograd::get_current_graph_task_keep_graph();
    std::vector<int64_t> sizes;
    for (const at::Tensor& result : to) sizes.push_back(result.size(0));
    const std::vector<at::Tensor> grad = grads[0].split_with_sizes(sizes);
    std::vector<int64_t> shape = from[0].sizes().vec();
    shape[0] = grads[0].size(0);
    const at::Tensor out = at::empty(shape, from[0].options());
    const std::vector<at::Tensor> to_images = out.split_with_sizes(sizes);
    on_each_thread(static_cast<int64_t>(from.size()), [&](int64_t part) {
      const auto i = static_cast<size_t>(part);
      to_images[i].copy_(torch::autograd::grad({to[i]}, {from[i]}, {grad[i]}, retain_graph)[0]);
    });
    return {out, {}, {}};
  }
};

}  // namespace

at::Tensor data_parallel(const at::Tensor& images, const ImageFunction& f) {
  const int64_t threads = at::get_num_threads();
  if (threads < 2 || !images.is_cpu() || images.size(0) < kFewestImages * threads || !images.requires_grad() ||
      !at::GradMode::is_enabled())
    return f(images, 0);
  return DataParallel::apply(images, f, threads);
}

}  // namespace sparsight
