// The differentiable routing operators in one form: a JSON string and tensors in, tensors out. The backward pass runs
// the forward pass again under autograd, so no router or loss needs a hand-written gradient; a router costs about a
// thousandth of its experts. Letters: moe/axes.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight::python {

enum class RoutingCallKind : int64_t { route, mix, loss };

struct RoutingCall {
  RoutingCallKind kind = RoutingCallKind::route;
  std::string_view config;
  int64_t images = 0;              // B
  std::string_view samples;        // "noise,jitter": names of the last inputs of a route
  std::vector<at::Tensor> inputs;  // undefined if the caller passed none
};

// route: in  tokens [N,D], seed [] int64, valid [N], token_id [N], target [B,E], priority [N], weights..., samples...
//        out gate [A], losses [L], logits [N,E], scores [N,E]; token, expert, rank [A] int64, kept [A] bool,
//            chosen_count [E] int64; group_scores [N,G], group_chosen [N,G] bool; metrics [M]
//        For a router with a fixed number K of experts per token A = N K, assignment j K + r is token j's choice of
//        rank r, and a choice that is not made (padding, skipped) has expert -1, gate 0 and kept false. logits and
//        scores are [0,E] for a router without them. group_... are the first level of strictly balanced two-level
//        gating: scores of the G groups, and the groups chosen for each token; [0,0] for other routers. metrics are
//        the router's own (Router::metrics).
// mix:   in  tokens [N,D], valid [N], weights...
//        out dispatch, combine, logits [B,S,P]
// loss:  in  logits, noisy_logits [N,E], noise_scale [N,E] or [], scores [N,E], gate, expert [N,K], valid [N],
//            target [B,E], threshold [E], token [A]
//        out [] fp32, or fp64 if any input is; half precision inputs are converted to fp32 first
//        Where token is given, gate and expert are [A] and a token may have any number of experts. Expert -1 means no
//        choice.
// The config of a loss: {"loss": "load", "experts": 8, "k": 2, "group_tokens": 0, "variants": {...}}.
std::vector<at::Tensor> run(const RoutingCall& call);

// The gradients of the inputs marked in `needs`. `grads` are those of the first outputs; undefined: no gradient. Raises
// Error if there are more gradients than outputs or one is not like its output, or `needs` and the inputs differ in
// number.
std::vector<at::Tensor> run_backward(const RoutingCall& call, const std::vector<at::Tensor>& grads,
                                     const std::vector<bool>& needs);

}  // namespace sparsight::python
