// The decision of a router as plain arrays: what moe/routing.h is on tensors, with the same names. Letters:
// moe/axes.md; A assignments, in the order of moe/routing.h.
#pragma once

#include "sparsight/engine/array.h"
#include "sparsight/engine/token_layout.h"

namespace sparsight::engine {

struct Routing {
  TokenLayout layout;
  int64_t tokens = 0, experts = 0;  // N, E
  int64_t per_token = 0;            // K of token-choice routers, else 0
  bool varying = false;             // tokens have different numbers of choices, at most K
  bool skips = false;               // a token may have fewer than K choices although capacity counts K per token
  int64_t slots = 0;                // of each expert and image, for a router that mixes tokens; such a routing has no
                                    // assignments

  Array<float> logits;   // [N,E]; empty for routers without. A router that mixes tokens: [B,S,P]
  Array<float> scores;   // [N,E]; empty for routers without. A router that mixes tokens: the weights of tokens in slots
  Array<float> combine;  // [B,S,P]: the weights of slots in tokens; empty unless tokens are mixed

  Array<int64_t> token, expert, rank;  // [A]
  Array<float> gate;                   // [A]
  Array<bool> kept;                    // [A]: false for what capacity drops
  Array<int64_t> position;             // [A]: slot in the expert's buffer; empty without a limit
  Array<int64_t> capacity;             // [G]: slots per expert of each group; empty without a limit
  Array<int64_t> order, offsets;       // kept assignments by expert, and where those of each expert begin, [E+1]

  int64_t assignments() const { return expert.size(); }
  bool mixes_tokens() const { return slots > 0; }

  // Empties the arrays for a decision about tokens of this layout.
  void start(const TokenLayout& token_layout, int64_t expert_count);
  // Makes room for `count` assignments.
  void set_assignments(int64_t count);
  // Each token t chooses the experts chosen[t * k .. t * k + k) in that order: sets token, expert, rank and per_token,
  // and makes room for gates.
  void choose_per_token(const int64_t* chosen, int64_t k);
  // Removes the assignments a with keeps[a] == false; those that stay keep their order.
  void select(const bool* keeps);
  // Keeps all assignments, and groups them by expert.
  void keep_all();
  // Groups the kept assignments by expert: order and offsets.
  void group_kept();
};

}  // namespace sparsight::engine
