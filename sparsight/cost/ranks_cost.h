// What a training step takes on R ranks, by the alpha-beta model: a message of n bytes takes alpha + n / beta seconds.
// Every rank trains on the same number of images, so R ranks train on R times as many per step.
//
// Data parallel: the gradients of all parameters are summed in rank order, by a reduce-scatter (all-to-all) after each
// minibatch and one all-gather. Expert parallel over n ranks: each holds E/n experts of every MoE layer; rows travel to
// their experts and back, and so do gradients; each expert's gradients are then summed over the R/n ranks that have it.
// n = 1 is data parallel alone, n = R expert parallel alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sparsight {

// Between any two ranks, in both directions at once.
struct Network {
  std::string name;     // "10gbe"
  std::string summary;  // "10 Gbit Ethernet, TCP"
  double alpha = 0;     // seconds until a message of one byte has arrived
  double beta = 0;      // bytes per second that a rank sends, and receives at the same time
};
const std::vector<Network>& networks();
// Raises UsageError for an unknown name.
const Network& find_network(const std::string& name);

// The rows that an MoE layer passes to its experts for an image, before capacity.
struct ExpertExchange {
  std::string layer;
  double rows = 0;                 // k S, for routers that choose k experts for each of S tokens
  int64_t width = 0, outputs = 0;  // D of the rows, and of what experts return
  int64_t experts = 0;             // E
  int64_t parameters = 0;          // of all E experts
};

// The step of one rank.
struct RankWork {
  double compute_seconds = 0;    // forward and backward passes of all minibatches, on one rank
  int64_t minibatches = 1;       // train.accumulate
  int64_t images = 1;            // of a minibatch
  int64_t other_parameters = 0;  // of everything but the layers' experts
  std::vector<ExpertExchange> layers = {};
};

// Seconds of an all-to-all in which each rank has `bytes`, of which it keeps its own 1/R: alpha + (R-1)/R bytes /
// beta. An all-gather whose result has `bytes` takes the same.
double all_to_all_seconds(double bytes, int64_t ranks, const Network& network);
// Seconds of the sum of `bytes` of gradients: an all-to-all for each minibatch, and an all-gather.
double ordered_sum_seconds(double bytes, int64_t ranks, int64_t minibatches, const Network& network);
// Seconds in which the rows of all layers travel in a minibatch: for each layer the counts of E experts, then rows to
// experts (D), results back (outputs), and the gradients of both.
double expert_exchange_seconds(const RankWork& work, int64_t expert_ranks, const Network& network);

struct RanksStep {
  int64_t ranks = 1, expert_ranks = 1;          // R and n
  double compute = 0, sums = 0, exchanges = 0;  // seconds
  int64_t parameters = 0;                       // of a rank
  double seconds() const { return compute + sums + exchanges; }
  double efficiency() const { return compute / seconds(); }  // images per second and rank, beside one rank
};
// ranks: a multiple of expert_ranks.
RanksStep ranks_step(const RankWork& work, int64_t ranks, int64_t expert_ranks, const Network& network);

// The ways to spread a step over R ranks. Nothing where there is none: expert parallel needs a number of ranks that
// divides the experts of every layer.
struct RanksChoice {
  RanksStep data;
  std::optional<RanksStep> experts = {};  // n = R
  std::optional<RanksStep> both = {};     // the fastest of 1 < n < R
  // "data", "expert" or "both": the fastest. On one rank, "none".
  std::string best() const;
};
RanksChoice ranks_choice(const RankWork& work, int64_t ranks, const Network& network);

// "1,2,4" or "1..1000": of a range its begin, doubled up to its end, and its end. Raises UsageError for anything else,
// and for numbers beyond 1 to 1,000,000.
std::vector<int64_t> parse_ranks(const std::string& text);

}  // namespace sparsight
