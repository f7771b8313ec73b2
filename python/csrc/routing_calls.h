// The differentiable operators on routings, in one form: a text and tensors in, tensors out. Their backward pass runs
// the forward pass again, under autograd: a router costs a thousandth of the experts behind it, and so every router and
// loss of the library has its gradient with no second description of it. Letters: moe/axes.md.
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
  std::string_view samples;        // "noise,jitter": what the last inputs of a route are
  std::vector<at::Tensor> inputs;  // undefined where the caller gave none
};

// route: in  tokens [N,D], seed [] int64, valid [N], token_id [N], target [B,E], priority [N], weights..., samples...
//        out gate [A], losses [L], logits [N,E], scores [N,E]; token, expert, rank [A] int64, kept [A] bool,
//            chosen_count [E] int64; group_scores [N,G], group_chosen [N,G] bool; metrics [M]
//        Of a router with a fixed number K of experts per token A = N K, assignment j K + r is token j's choice of
//        rank r, and a choice that is not made (padding, skipped) has expert -1, gate 0 and is not kept. logits and
//        scores are [0,E] for a router without them. group_... are the first level of strictly balanced gating on
//        two levels: scores of the G groups, and who took which token; [0,0] of other routers. metrics are what the
//        router reports itself (Router::metrics).
// mix:   in  tokens [N,D], valid [N], weights...
//        out dispatch, combine, logits [B,S,P]
// loss:  in  logits, noisy_logits [N,E], noise_scale [N,E] or [], scores [N,E], gate, expert [N,K], valid [N],
//            target [B,E], threshold [E], token [A]
//        out [] fp32, or fp64 where an input is; half types are widened first
//        With token, gate and expert are [A] and a token may have any number of experts; expert -1 is no choice.
// The config of a loss: {"loss": "load", "experts": 8, "k": 2, "group_tokens": 0, "variants": {...}}.
std::vector<at::Tensor> run(const RoutingCall& call);

// The gradients of the inputs that `needs` names, from those of the first outputs; undefined: no gradient. Raises Error
// where there are more gradients than outputs, or `needs` are not as many as the inputs.
std::vector<at::Tensor> run_backward(const RoutingCall& call, const std::vector<at::Tensor>& grads,
                                     const std::vector<bool>& needs);

}  // namespace sparsight::python
