#include "sparsight/moe/validate_routing.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/isfinite.h>

namespace sparsight {
namespace {

template <class... Parts>
[[noreturn]] void invalid(const Parts&... parts) {
  throw InvalidRouting(cat(parts...));
}

void check_shape(const char* name, const at::Tensor& tensor, at::IntArrayRef expected) {
  if (tensor.sizes() != expected) invalid(name, " has the shape ", tensor.sizes(), ", expected ", expected);
}

void check_type(const char* name, const at::Tensor& tensor, at::ScalarType expected) {
  if (tensor.scalar_type() != expected) invalid(name, " is ", tensor.scalar_type(), ", expected ", expected);
}

// A dense tensor on the device of the assignments: elements are read through pointers.
void check_memory(const char* name, const at::Tensor& tensor, const at::Device& device) {
  if (tensor.layout() != at::kStrided) invalid(name, " is ", tensor.layout(), ", expected a dense tensor");
  if (tensor.device() != device) invalid(name, " is on ", tensor.device(), ", expected ", device);
}

void check_real(const char* name, const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kFloat && tensor.scalar_type() != at::kDouble)
    invalid(name, " is ", tensor.scalar_type(), ", expected Float (Double for fp64 weights)");
}

// [N,E], or undefined.
void check_rows(const char* name, const at::Tensor& tensor, const Routing& routing) {
  if (!tensor.defined()) return;
  check_memory(name, tensor, routing.expert.device());
  check_real(name, tensor);
  check_shape(name, tensor, {routing.tokens, routing.experts});
}

// [E], or undefined.
void check_of_experts(const char* name, const at::Tensor& tensor, const Routing& routing) {
  if (!tensor.defined()) return;
  check_memory(name, tensor, routing.expert.device());
  check_real(name, tensor);
  check_shape(name, tensor, {routing.experts});
}

// Reads the elements of an int64 CPU tensor.
class Indices {
 public:
  explicit Indices(const at::Tensor& tensor) : kept_(tensor.contiguous()), first_(kept_.const_data_ptr<int64_t>()) {}
  int64_t operator[](int64_t i) const { return first_[i]; }
  int64_t size() const { return kept_.numel(); }

 private:
  at::Tensor kept_;
  const int64_t* first_;
};

bool is_below(int64_t index, int64_t end) { return static_cast<uint64_t>(index) < static_cast<uint64_t>(end); }

// Token-choice assignments are sorted by token and rank, and a token's experts are distinct, also those that are not
// kept, as capacity decides again. Expert-choice assignments can be in any order.
void check_order(const Routing& routing) {
  const Indices token(routing.token), expert(routing.expert), rank(routing.rank);
  const bool ranked = routing.per_token > 0;
  std::vector<int64_t> last_token(static_cast<size_t>(ranked ? routing.experts : 0), -1);  // of each expert
  for (int64_t a = 0; a < token.size(); ++a) {
    if (!is_below(token[a], routing.tokens))
      invalid("token of assignment ", a, " is ", token[a], ", must be from 0 to ", routing.tokens - 1);
    if (rank[a] < 0 || (ranked && rank[a] >= routing.per_token))
      invalid("rank of assignment ", a, " is ", rank[a],
              ranked ? cat(", per_token allows 0 to ", routing.per_token - 1) : ", ranks start at 0");
    if (ranked && a > 0 && (token[a] < token[a - 1] || (token[a] == token[a - 1] && rank[a] <= rank[a - 1])))
      invalid("assignment ", a, " (token ", token[a], ", expert ", expert[a], ", rank ", rank[a],
              ") comes after (token ", token[a - 1], ", expert ", expert[a - 1], ", rank ", rank[a - 1],
              "); sort them by token and rank");
    if (!ranked) continue;
    int64_t& last = last_token[static_cast<size_t>(expert[a])];
    if (last == token[a]) invalid("token ", token[a], " has expert ", expert[a], " twice");
    last = token[a];
  }
}

// chosen_count, order and offsets match the assignments, and no expert has a token twice.
void check_groups(const Routing& routing) {
  const int64_t assignments = routing.expert.size(0), experts = routing.experts;
  const Indices token(routing.token), expert(routing.expert), order(routing.order), offsets(routing.offsets),
      chosen(routing.chosen_count);
  const at::Tensor kept_in = routing.kept.contiguous();
  const bool* kept = kept_in.const_data_ptr<bool>();
  const auto stale = [] {
    invalid("chosen_count, order or offsets do not match the assignments; call finish_routing(routing) last");
  };
  if (offsets[0] != 0 || offsets[experts] != order.size()) stale();
  std::vector<int64_t> last_expert(static_cast<size_t>(routing.tokens), -1);  // last expert with the token
  for (int64_t e = 0; e < experts; ++e) {
    if (offsets[e + 1] < offsets[e] || offsets[e + 1] > order.size()) stale();
    for (int64_t i = offsets[e]; i < offsets[e + 1]; ++i) {
      if (!is_below(order[i], assignments) || expert[order[i]] != e || !kept[order[i]]) stale();
      int64_t& seen = last_expert[static_cast<size_t>(token[order[i]])];
      if (seen == e) invalid("token ", token[order[i]], " has expert ", e, " twice");
      seen = e;
    }
  }
  std::vector<int64_t> count(static_cast<size_t>(experts), 0);
  int64_t all_kept = 0;
  for (int64_t a = 0; a < assignments; ++a) {
    ++count[static_cast<size_t>(expert[a])];
    all_kept += kept[a];
  }
  if (all_kept != order.size()) stale();
  for (int64_t e = 0; e < experts; ++e)
    if (count[static_cast<size_t>(e)] != chosen[e]) stale();
}

template <class T>
int64_t first_not_finite(const at::Tensor& gate) {
  const T* values = gate.const_data_ptr<T>();
  for (int64_t a = 0; a < gate.numel(); ++a)
    if (!std::isfinite(values[a])) return a;
  return -1;
}

bool all_finite(const at::Tensor& x) { return !x.defined() || x.isfinite().all().item<bool>(); }

// Logits, or the scores of a router without logits.
bool has_finite_rows(const Routing& routing) {
  if (routing.soft) return all_finite(routing.soft->logits);
  return all_finite(routing.clean_logits) && all_finite(routing.noisy_logits) &&
         (routing.clean_logits.defined() || all_finite(routing.scores)) &&
         (!routing.groups || has_finite_rows(*routing.groups));
}

bool has_finite_weights(const RoutingRequest& request) {
  return !request.weights || std::ranges::all_of(request.weights(), all_finite);
}

// NaN or infinity in a token, weight or logit may reach a gate: training stops or skips the step, evaluation continues.
// From finite inputs it is a bug in the router.
void check_gates(const Routing& routing, const RoutingRequest& request) {
  const at::Tensor gate = routing.gate.detach().contiguous();
  const int64_t a = gate.scalar_type() == at::kDouble ? first_not_finite<double>(gate) : first_not_finite<float>(gate);
  if (a < 0 || !has_finite_inputs(routing, request)) return;
  invalid("gate of assignment ", a, " is ", gate[a].item<double>(),
          ", although tokens, weights and logits are finite; does it divide by a sum that may be 0?");
}

// What finish_routing() derives.
void check_derived(const Routing& routing) {
  if (!routing.kept.defined() || !routing.chosen_count.defined() || !routing.order.defined() ||
      !routing.offsets.defined())
    invalid("kept, chosen_count, order or offsets is undefined; call finish_routing(routing) last");
  for (const auto& [name, tensor] : {std::pair<const char*, const at::Tensor&>{"chosen_count", routing.chosen_count},
                                     {"order", routing.order},
                                     {"offsets", routing.offsets}}) {
    check_memory(name, tensor, routing.expert.device());
    check_type(name, tensor, at::kLong);
  }
  check_shape("chosen_count", routing.chosen_count, {routing.experts});
  check_shape("offsets", routing.offsets, {routing.experts + 1});
  check_shape("order", routing.order, {routing.order.numel()});
}

// Logits, scores and what belongs to them.
void check_dense(const Routing& routing) {
  check_rows("clean_logits", routing.clean_logits, routing);
  check_rows("noisy_logits", routing.noisy_logits, routing);
  if (routing.clean_logits.defined() != routing.noisy_logits.defined())
    invalid(routing.clean_logits.defined() ? "noisy_logits" : "clean_logits", " is undefined but ",
            routing.clean_logits.defined() ? "clean_logits" : "noisy_logits",
            " is not; without noise they are the same tensor");
  check_rows("scores", routing.scores, routing);
  if (routing.noise_scale.defined() && routing.noise_scale.dim() == 0) {
    check_memory("noise_scale", routing.noise_scale, routing.noise_scale.device());
    check_real("noise_scale", routing.noise_scale);
  } else {
    check_rows("noise_scale", routing.noise_scale, routing);
  }
  check_of_experts("threshold", routing.threshold, routing);
  check_of_experts("smooth_load", routing.smooth_load, routing);
}

}  // namespace

bool has_finite_inputs(const Routing& routing, const RoutingRequest& request) {
  return all_finite(request.tokens) && has_finite_rows(routing) && has_finite_weights(request);
}

void check_assignments(const Routing& routing) {
  constexpr int64_t kMaxExperts = 1 << 24;  // finish_routing() counts the rows of each
  if (routing.experts < 1 || routing.experts > kMaxExperts)
    invalid("experts is ", routing.experts, ", must be from 1 to ", kMaxExperts);
  for (const auto& [name, tensor] : {std::pair<const char*, const at::Tensor&>{"token", routing.token},
                                     {"expert", routing.expert},
                                     {"rank", routing.rank}}) {
    if (!tensor.defined() || tensor.dim() != 1)
      invalid(name, " must be int64 [A], one entry per assignment; choose_per_token() sets it");
    check_memory(name, tensor, routing.expert.defined() ? routing.expert.device() : tensor.device());
    check_type(name, tensor, at::kLong);
  }
  const int64_t assignments = routing.expert.size(0);
  check_shape("token", routing.token, {assignments});
  check_shape("rank", routing.rank, {assignments});
  if (!routing.gate.defined()) invalid("gate is undefined; set it to the weight of each assignment, [A]");
  check_memory("gate", routing.gate, routing.expert.device());
  check_real("gate", routing.gate);
  check_shape("gate", routing.gate, {assignments});
  if (routing.kept.defined()) {
    check_memory("kept", routing.kept, routing.expert.device());
    check_type("kept", routing.kept, at::kBool);
    check_shape("kept", routing.kept, {assignments});
  }
  if (!routing.expert.is_cpu()) return;
  const Indices expert(routing.expert);
  for (int64_t a = 0; a < assignments; ++a)
    if (!is_below(expert[a], routing.experts))
      invalid("expert of assignment ", a, " is ", expert[a], ", must be from 0 to ", routing.experts - 1);
}

void validate_routing(const Routing& routing, const RoutingRequest& request) {
  if (routing.soft) return validate_routing(*routing.soft, request);
  const int64_t tokens = request.tokens.size(0);
  if (routing.tokens != tokens) invalid("tokens is ", routing.tokens, ", expected ", tokens);
  if (routing.experts < 1 || (request.experts > 0 && routing.experts != request.experts))
    invalid("experts is ", routing.experts, ", expected ",
            request.experts > 0 ? std::to_string(request.experts) : "at least 1");
  check_assignments(routing);
  check_dense(routing);
  if (routing.per_token < 0 || routing.per_token > routing.experts)
    invalid("per_token is ", routing.per_token, ", must be from 0 to ", routing.experts,
            ": choices per token, 0 if experts choose");
  check_derived(routing);
  if (routing.expert.device() != request.tokens.device())
    invalid("expert is on ", routing.expert.device(), ", expected ", request.tokens.device());
  if (routing.expert.is_cpu()) {
    check_order(routing);
    check_groups(routing);
    check_gates(routing, request);
  }
  if (!routing.groups) return;
  try {
    validate_routing(*routing.groups, {request.tokens, 0, request.weights});
  } catch (const InvalidRouting& error) {
    invalid("in groups: ", error.what());
  }
}

void validate_routing(const SoftRouting& routing, const RoutingRequest& request) {
  constexpr int64_t kMaxSize = int64_t{1} << 31;  // of a dimension, so that products of two do not overflow
  if (routing.experts < 1 || routing.slots < 1 || routing.experts > kMaxSize || routing.slots > kMaxSize ||
      (request.experts > 0 && routing.experts != request.experts))
    invalid("it has ", routing.experts, " experts of ", routing.slots, " slots, expected ",
            request.experts > 0 ? std::to_string(request.experts) : "at least 1", " experts of 1 to ", kMaxSize,
            " slots");
  const TokenLayout& layout = routing.layout;
  if (layout.images < 0 || layout.per_image < 0 || layout.images > kMaxSize || layout.per_image > kMaxSize ||
      layout.images * layout.per_image != request.tokens.size(0))
    invalid("its layout has ", layout.images, " images of ", layout.per_image, " tokens, expected ",
            request.tokens.size(0), " tokens");
  for (const auto& [name, tensor] :
       {std::pair<const char*, const at::Tensor&>{"dispatch", routing.dispatch}, {"combine", routing.combine}}) {
    if (!tensor.defined()) invalid(name, " is undefined");
    check_memory(name, tensor, request.tokens.device());
    check_real(name, tensor);
    check_shape(name, tensor, {layout.images, layout.per_image, routing.experts * routing.slots});
    if (tensor.is_cpu() && !all_finite(tensor) && all_finite(request.tokens) && all_finite(routing.logits) &&
        has_finite_weights(request))
      invalid(name, " has NaN or infinity, although tokens, weights and logits are finite");
  }
  if (!routing.logits.defined()) return;
  check_memory("logits", routing.logits, request.tokens.device());
  check_real("logits", routing.logits);
  check_shape("logits", routing.logits, routing.dispatch.sizes());
}

}  // namespace sparsight
